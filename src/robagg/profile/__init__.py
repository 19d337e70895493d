"""Profiles: a rule's accuracy over the strength of each family of attacks, and the worst case that a search finds."""

from robagg.profile.families import FAMILIES, PLAIN, Family
from robagg.profile.gather import Found, Point, gather
from robagg.profile.plan import Profile, perform, place_store, propose

__all__ = ["FAMILIES", "PLAIN", "Family", "Found", "Point", "Profile", "gather", "perform", "place_store", "propose"]

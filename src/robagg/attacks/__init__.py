"""The attacks, one file each; `parse` reads them from text: `parse("alie(z=1.0)")`."""

from robagg.attacks.alie import ALIE
from robagg.attacks.base import Attack, Setup, State, View, attacks, parse
from robagg.attacks.bit_flip import BF
from robagg.attacks.gaussian import GA
from robagg.attacks.ipm import IPM
from robagg.attacks.label_flip import LF
from robagg.attacks.mimic import MIMIC
from robagg.attacks.mixed import Mixed
from robagg.attacks.no_attack import NoAttack
from robagg.attacks.non_finite import NonFinite
from robagg.attacks.sign_flip import SignFlip

__all__ = [
    "ALIE",
    "BF",
    "GA",
    "IPM",
    "LF",
    "MIMIC",
    "Attack",
    "Mixed",
    "NoAttack",
    "NonFinite",
    "Setup",
    "SignFlip",
    "State",
    "View",
    "attacks",
    "parse",
]

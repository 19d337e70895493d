"""Gradients of all clients on one shared model: one after the other, mapped, or as one dense batch."""

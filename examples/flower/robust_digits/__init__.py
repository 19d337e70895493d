"""Digits, trained by honest and hostile clients."""

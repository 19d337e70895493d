"""The version of the package, for modules below its door."""

__version__ = "0.1.0"

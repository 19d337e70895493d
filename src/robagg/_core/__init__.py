"""The engine that turns n rows into one; private, and explained in README.md beside this file."""

"""Triton kernels for the dense batch on a GPU."""

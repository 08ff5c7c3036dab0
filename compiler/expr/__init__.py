"""Tensor expressions: what is computed, element by element."""

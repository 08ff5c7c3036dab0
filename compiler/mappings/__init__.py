"""Mappings: compute an operator as a different one, whose tensors the host packs accordingly."""

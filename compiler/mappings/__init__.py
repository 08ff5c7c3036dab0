"""Mappings: an operator computed as another one, whose tensors the host packs accordingly."""

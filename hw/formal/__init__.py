"""Proofs of the hardware's properties by induction."""

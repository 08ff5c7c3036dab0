"""Properties of the hardware and their proofs by induction: they hold for all time."""

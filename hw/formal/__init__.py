"""Properties of the hardware that hold for all time: what is claimed, and the proof by induction."""

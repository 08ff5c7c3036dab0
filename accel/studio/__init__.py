"""A page on which one changes a run and sees the effect."""

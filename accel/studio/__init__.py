"""A page on which one changes workload, machine or schedule and sees the resulting run."""

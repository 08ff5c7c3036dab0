"""Backends run programs: two simulators and the hardware."""

"""Backends run programs: two simulators, and the hardware in simulation."""

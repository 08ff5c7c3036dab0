"""What runs programs: simulators, and the hardware in simulation."""

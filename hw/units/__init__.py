"""The units that execute instructions."""

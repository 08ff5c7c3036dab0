"""The units that execute instructions, and the token counters between them."""

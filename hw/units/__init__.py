"""The units that execute instructions, and the token counters through which they meet."""

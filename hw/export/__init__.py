"""The hardware for other tools, and its area and frequency."""

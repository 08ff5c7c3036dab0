"""Networks in other people's files: reading them, and writing graphs as such."""

"""The core on a board: memory in block RAM, a serial line to a host, and the host's side."""

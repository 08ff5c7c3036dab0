"""The core on a board: block RAM, a serial line, and the host's side."""

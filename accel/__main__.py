"""``python -m accel``: the command line."""

from accel.cli import main

main()

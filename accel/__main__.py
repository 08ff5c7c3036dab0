"""``python -m accel``: the command line."""

from accel.cli import main

if __name__ == "__main__":
    main()

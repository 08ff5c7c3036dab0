"""The command line."""

from accel.cli.app import main

__all__ = ["main"]

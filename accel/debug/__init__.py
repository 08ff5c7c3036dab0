"""The debugger: run a program step by step, and inspect memory and units."""

from accel.debug.debugger import Debugger, Halt
from accel.debug.debugger_commands import Session

__all__ = ["Debugger", "Halt", "Session"]

"""The debugger: a run that can be looked into, instruction by instruction or cycle by cycle."""

from accel.debug.commands import Session
from accel.debug.debugger import Debugger, Halt

__all__ = ["Debugger", "Halt", "Session"]

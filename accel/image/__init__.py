"""The program file: what it holds, where that lies in DRAM, and what a run of it starts from."""

from accel.base.moved import reexport

__getattr__ = reexport(__name__, "accel.image.image", "accel.image.room", "accel.image.tensor")

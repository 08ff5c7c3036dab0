"""The program file: content, addresses in DRAM, and the initial state of a run."""

from accel.base.deprecated_modules import reexport

__getattr__ = reexport(
    __name__, "accel.image.image", "accel.image.address_allocation", "accel.image.image_tensor"
)

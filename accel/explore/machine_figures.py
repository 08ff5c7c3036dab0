"""Figures of a machine that need no measurement."""

from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

from accel.area.area_model import block_rams, multipliers, predict_area
from accel.core.config import Config


class MachineFigure(Struct, frozen=True, kw_only=True):
    unit: str
    doc: str
    value: Callable[[Config], int | float]


MACHINE_FIGURES: dict[str, MachineFigure] = {
    "block_rams": MachineFigure(
        unit="18 Kbit", doc="block RAMs of 18 Kbit that the scratchpads take on an ECP5", value=block_rams
    ),
    "multipliers": MachineFigure(
        unit="18x18 bits", doc="multipliers of 18x18 bits that the core takes on an ECP5", value=multipliers
    ),
    "lut_slots": MachineFigure(
        unit="LUT4",
        doc="LUT slots that the core takes on an ECP5 before placement, as the area model predicts them",
        value=lambda one: predict_area(one).lut_slots,
    ),
    "flip_flops": MachineFigure(
        unit="",
        doc="flip-flops that the core takes on an ECP5, as the area model predicts them",
        value=lambda one: predict_area(one).flip_flops,
    ),
    "macs_per_cycle": MachineFigure(
        unit="",
        doc="multiply-accumulates of the GEMM core in a cycle",
        value=lambda one: one.macs_per_cycle,
    ),
    "scratchpad_bytes": MachineFigure(
        unit="bytes",
        doc="capacity of inp, wgt and acc together",
        value=lambda one: one.inp_bytes + one.wgt_bytes + one.acc_bytes,
    ),
}


def machine_figures(config: Config) -> dict[str, int | float]:
    return dict(_figures(config))


@lru_cache(maxsize=1 << 12)
def _figures(config: Config) -> dict[str, int | float]:
    return {name: figure.value(config) for name, figure in MACHINE_FIGURES.items()}

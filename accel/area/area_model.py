"""Prediction of the FPGA resources of a machine from its fields."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.area.area_features import FLIP_FLOP_FEATURES, LUT_FEATURES, features
from accel.area.memory_primitives import scratchpad_primitives
from accel.core.config import Config, from_dict

DATA = "synthesized_machines.jsonl"
"""Synthesized machines, as lines of JSON with fields and cells."""
FOLDS = 5
"""Number of fits. Each holds out other machines, a fifth of all."""
_RIDGE = 1e-4
"""Weight of small coefficients. Features that always occur together share their effect."""
_ALU_MULTIPLIERS = {1: 3, 2: 3, 3: 2, 4: 1, 5: 1}
"""Multipliers of an ALU lane by ``mul_slots``, for the needed products of 16-bit halves."""
_LANE_MULTIPLIERS = 8
"""Multipliers of a requantization lane: four for the halves of the scale, two for each
factor of an addition."""
_DISPATCH_MULTIPLIERS = 5
"""Multipliers that compute the extents of transfers."""
_SLOTS = {"lut4": 1, "carry_pairs": 2, "distributed_ram": 6}
"""LUT slots of a cell."""

Row = npt.NDArray[np.float64]


class AreaError(Struct, frozen=True, kw_only=True):
    """Relative errors on machines that were held out from the fit, for example 0.03 for 3 %."""

    median: float
    largest: float


class Area(Struct, frozen=True, kw_only=True):
    """Predicted resources on an ECP5.

    Attributes:
        lut_slots: LUTs with four inputs: logic, carries and distributed RAMs.
        block_ram: block RAMs of 18 Kbit, exact.
        multipliers: multipliers of 18x18 bits, exact.
        machines: synthesized machines that the model is fitted to.
        outside: features larger than on every fitted machine, for which the errors do not hold.
    """

    lut_slots: int
    flip_flops: int
    block_ram: int
    multipliers: int
    machines: int
    lut_error: AreaError
    flip_flop_error: AreaError
    outside: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "lut_slots": self.lut_slots,
            "flip_flops": self.flip_flops,
            "block_ram": self.block_ram,
            "multipliers": self.multipliers,
            "machines": self.machines,
            "errors": {
                name: {"median": error.median, "largest": error.largest}
                for name, error in (("lut_slots", self.lut_error), ("flip_flops", self.flip_flop_error))
            },
            "outside": list(self.outside),
        }


class Synthesized(Struct, frozen=True, kw_only=True):
    """A synthesized machine, and its cells as :func:`~accel.hw.export.ecp5_cells.synthesize` counts them."""

    config: Config
    cells: Mapping[str, int]

    @property
    def lut_slots(self) -> int:
        return sum(slots * self.cells[name] for name, slots in _SLOTS.items())

    @property
    def flip_flops(self) -> int:
        return self.cells["flip_flops"]


def read_machines(text: str) -> list[Synthesized]:
    """Read synthesized machines from lines of JSON."""
    found = map(json.loads, text.splitlines())
    return [Synthesized(config=from_dict(one["fields"]), cells=one["cells"]) for one in found]


@lru_cache(maxsize=1)
def synthesized_machines() -> tuple[Synthesized, ...]:
    """Return the machines of the package."""
    return tuple(read_machines(files("accel.area").joinpath(DATA).read_text(encoding="utf-8")))


def predict_area(config: Config) -> Area:
    """Predict the resources of a machine on an ECP5 before placement.

    LUT slots and flip-flops come from a linear model of the machine's parts. ALU operations other than VTA's
    are not included.
    """
    model = area_model()
    own = features(config.hardware)
    return Area(
        lut_slots=round(model.lut.predict(own)),
        flip_flops=round(model.flip_flop.predict(own)),
        block_ram=block_rams(config),
        multipliers=multipliers(config),
        machines=model.machines,
        lut_error=model.lut.error,
        flip_flop_error=model.flip_flop.error,
        outside=tuple(name for name, most in model.largest.items() if own[name] > most),
    )


def block_rams(config: Config) -> int:
    """Return the block RAMs of a machine. All other memories are distributed RAMs."""
    return scratchpad_primitives(config).block_ram


def multipliers(config: Config) -> int:
    """Return the multipliers of the GEMM core, the ALU, requantization and dispatch."""
    alu = _ALU_MULTIPLIERS[config.mul_slots] if "mul" in config.operation_codes else 0
    lane = _LANE_MULTIPLIERS + config.res_mul if config.post else 0
    return (
        config.macs_per_cycle
        + config.batch * config.block_out * alu
        + (config.lanes * lane if config.post else 0)
        + _DISPATCH_MULTIPLIERS
    )


class LinearModel(Struct, frozen=True, kw_only=True):
    """A sum of features with weights of at least zero.

    Attributes:
        weights: by feature, without zeros.
    """

    weights: Mapping[str, float]
    error: AreaError

    def predict(self, own: Mapping[str, float]) -> float:
        return sum(weight * own[name] for name, weight in self.weights.items())


class AreaModel(Struct, frozen=True, kw_only=True):
    """Fitted models, and the largest value of each feature among their machines."""

    lut: LinearModel
    flip_flop: LinearModel
    machines: int
    largest: Mapping[str, float]


@lru_cache(maxsize=1)
def area_model() -> AreaModel:
    """Return the models fitted to the machines of the package."""
    return fit_area(synthesized_machines())


def fit_area(machines: Sequence[Synthesized]) -> AreaModel:
    """Fit models of LUT slots and flip-flops."""
    rows = [features(one.config) for one in machines]
    used = [*LUT_FEATURES, *FLIP_FLOP_FEATURES]
    return AreaModel(
        lut=_model(machines, rows, LUT_FEATURES, lambda one: one.lut_slots),
        flip_flop=_model(machines, rows, FLIP_FLOP_FEATURES, lambda one: one.flip_flops),
        machines=len(machines),
        largest={name: max(row[name] for row in rows) for name in dict.fromkeys(used)},
    )


def _model(
    machines: Sequence[Synthesized],
    rows: Sequence[Mapping[str, float]],
    names: Sequence[str],
    count: Callable[[Synthesized], int],
) -> LinearModel:
    counts = np.array([count(one) for one in machines], dtype=float)
    errors = held_out_errors(rows, names, counts)
    error = AreaError(median=float(statistics.median(map(abs, errors))), largest=float(max(map(abs, errors))))
    return LinearModel(weights=_fit(rows, names, counts), error=error)


def held_out_errors(rows: Sequence[Mapping[str, float]], names: Sequence[str], counts: Row) -> list[float]:
    """Return the relative error of each machine's prediction, fitted without its fold."""
    errors = [0.0] * len(rows)
    for fold in range(FOLDS):
        kept = [n for n in range(len(rows)) if n % FOLDS != fold]
        weights = _fit([rows[n] for n in kept], names, counts[kept])
        for n in range(fold, len(rows), FOLDS):
            predicted = sum(weight * rows[n][name] for name, weight in weights.items())
            errors[n] = predicted / counts[n] - 1
    return errors


def _fit(rows: Sequence[Mapping[str, float]], names: Sequence[str], counts: Row) -> dict[str, float]:
    """Return weights of at least zero that minimize the squares of relative errors.

    The feature with the most negative weight is removed until none is negative.
    """
    matrix = np.array([[row[name] for name in names] for row in rows])
    scale = np.maximum(matrix.max(axis=0), 1e-9)
    relative = matrix / scale / counts[:, None] * counts.mean()
    kept = [n for n, name in enumerate(names) if matrix[:, n].any()]
    while True:
        ridge = np.sqrt(_RIDGE) * np.eye(len(kept))
        left = np.vstack([relative[:, kept], ridge])
        right = np.concatenate([np.full(len(rows), counts.mean()), np.zeros(len(kept))])
        found = np.linalg.lstsq(left, right, rcond=None)[0]
        least = int(np.argmin(found))
        if found[least] >= 0:
            return {names[n]: float(value / scale[n]) for n, value in zip(kept, found, strict=True)}
        del kept[least]

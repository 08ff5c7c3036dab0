"""The elements that each instruction reads and writes.

The compiler inserts tokens by them, and the token check proves the tokens sufficient.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.core.config import Config
from accel.core.fault_causes import (
    INDEX_CAUSES,
    NOTHING_SET,
    Fault,
    instruction_faults,
    residual_change,
    sram_ranges,
    taps_fault,
)
from accel.core.isa import (
    Instruction,
    Loops,
    MicroOp,
    SetAcc,
    Transfer,
    UopArray,
    decode_uops,
    field_specs,
    without_tokens,
)
from accel.core.scratchpad_specs import RES, UOP

Elements = slice | npt.NDArray[np.intp]
"""A contiguous range, or sorted indices."""


class Touch(NamedTuple):
    """Elements of one scratchpad that an instruction reads or writes."""

    memory: str
    write: bool
    elements: Elements


def index_count(touches: Iterable[Touch]) -> int:
    return sum(len(one.elements) for one in touches if not isinstance(one.elements, slice))


def coarse(touches: Iterable[Touch]) -> tuple[Touch, ...]:
    """Replace index arrays by ranges from lowest to highest."""
    return tuple(
        one
        if isinstance(one.elements, slice)
        else one._replace(elements=slice(int(one.elements[0]), int(one.elements[-1]) + 1))
        for one in touches
    )


class DramRows(NamedTuple):
    start: int
    rows: int
    row_bytes: int
    stride: int


COLUMNS = {name: column for column, name in enumerate(field_specs(MicroOp))}
"""Columns of decoded micro-ops: dst 0, src 1, wgt 2."""


class LoopShape(NamedTuple):
    """The loops around micro-ops, and their operands by column."""

    iter_out: int
    iter_in: int
    factors: tuple[int, int, int, int, int, int]
    """dst out, dst in, src out, src in, wgt out, wgt in. Zero without the operand."""
    checked: tuple[bool, bool, bool]
    """Whether the instruction uses the operand."""
    depths: tuple[int, int, int]
    taps: int = 1
    """Elements that one index of src selects."""
    step: int = 0


def loop_shape(instruction: Loops, config: Config, setting: SetAcc = NOTHING_SET) -> LoopShape:
    """Return iterations, factors and used operands. ``setting`` has the taps of a depthwise MAC."""
    factors, used, depths = [0] * 6, [False] * 3, [0] * 3
    tapped = False
    for operand in instruction.OPERANDS:
        column = COLUMNS[operand.name]
        factors[2 * column : 2 * column + 2] = (getattr(instruction, name) for name in operand.factors)
        used[column] = operand.used_by(instruction)
        depths[column] = operand.memory.depth(config)
        tapped = tapped or operand.tapped_by(instruction)
    assert setting.taps or not tapped, "the taps of a depthwise MAC are not known"
    return LoopShape(
        iter_out=instruction.iter_out,
        iter_in=instruction.iter_in,
        factors=(factors[0], factors[1], factors[2], factors[3], factors[4], factors[5]),
        checked=(used[0], used[1], used[2]),
        depths=(depths[0], depths[1], depths[2]),
        taps=setting.taps if tapped else 1,
        step=setting.step if tapped else 0,
    )


def reached(uops: UopArray, shape: LoopShape, operand: int) -> npt.NDArray[np.intp]:
    """Return the sorted distinct indices of one operand (0 dst, 1 src, 2 wgt).

    ``depth`` represents all indices beyond the scratchpad. Time and memory grow with the depth, not the
    iterations.
    """
    steps = (
        (shape.iter_out, shape.factors[2 * operand]),
        (shape.iter_in, shape.factors[2 * operand + 1]),
        (shape.taps if operand == COLUMNS["src"] else 1, shape.step),
    )
    return _reached(uops[:, operand].tobytes(), shape.depths[operand], steps)


@lru_cache(maxsize=1 << 12)
def _reached(
    column: bytes, depth: int, steps: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
) -> npt.NDArray[np.intp]:
    """Cached, because the layers of a network repeat loops. ``steps`` are iterations and distances."""
    found = np.zeros(depth + 1, dtype=bool)
    found[np.minimum(np.frombuffer(column, dtype=np.int64), depth)] = True
    for count, factor in steps:
        done = 1 if factor else count
        while done < count:  # found holds ``done`` iterations; double them
            more = min(done, count - done)
            _add_shifted(found, min(depth, more * factor))
            done += more
    indices = np.flatnonzero(found)
    indices.flags.writeable = False
    return indices


def _add_shifted(found: npt.NDArray[np.bool_], shift: int) -> None:
    """Mark the elements ``shift`` after marked ones."""
    last = len(found) - 1
    found[last] |= found[last - shift :].any()
    found[shift:last] |= found[: last - shift].copy()


def index_fault(
    instruction: Loops, uops: UopArray, config: Config, setting: SetAcc = NOTHING_SET
) -> tuple[int, Fault] | None:
    """Return number and fault of the first micro-op, in order of execution, with an index out of range."""
    if not instruction.uop_count:
        return None
    shape = loop_shape(instruction, config, setting)
    best: tuple[int, int, int] | None = None
    for operand, depth in enumerate(shape.depths):
        if not shape.checked[operand] or _highest(uops, shape, operand) < depth:
            continue
        position, index = _first_beyond(_last_taps(uops, shape, operand), shape, operand)
        if best is None or position < best[0]:
            best = (position, operand, index)
    if best is None:
        return None
    position, operand, index = best
    name = next(name for name, column in COLUMNS.items() if column == operand)
    return position, Fault(
        cause=INDEX_CAUSES[name],
        message=f"{instruction.mnemonic} has {name} index {index} in micro-op {position} of its "
        f"{instruction.uop_count}; that scratchpad has {shape.depths[operand]} elements",
    )


def _highest(uops: UopArray, shape: LoopShape, operand: int) -> int:
    out, inner = shape.factors[2 * operand], shape.factors[2 * operand + 1]
    return (
        int(_last_taps(uops, shape, operand).max()) + out * (shape.iter_out - 1) + inner * (shape.iter_in - 1)
    )


def _last_taps(uops: UopArray, shape: LoopShape, operand: int) -> npt.NDArray[np.int64]:
    column: npt.NDArray[np.int64] = uops[:, operand]
    reach = (shape.taps - 1) * shape.step if operand == COLUMNS["src"] else 0
    return column + reach if reach else column


def _first_beyond(column: npt.NDArray[np.int64], shape: LoopShape, operand: int) -> tuple[int, int]:
    depth = shape.depths[operand]
    out, inner = shape.factors[2 * operand], shape.factors[2 * operand + 1]
    peak = int(column.max())
    reach_inner = peak + inner * (shape.iter_in - 1)
    i = 0 if reach_inner >= depth else -(-(depth - reach_inner) // out)
    base = peak + i * out
    j = 0 if base >= depth else -(-(depth - base) // inner)
    offset = i * out + j * inner
    u = int(np.flatnonzero(column + offset >= depth)[0])
    return (i * shape.iter_in + j) * len(column) + u, int(column[u]) + offset


def as_elements(indices: npt.NDArray[np.intp]) -> Elements:
    if len(indices) and int(indices[-1]) - int(indices[0]) + 1 == len(indices):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


class LoopAccess(NamedTuple):
    """The access sets of an instruction, or its :func:`index_fault`."""

    touches: tuple[Touch, ...]
    fault: tuple[int, Fault] | None


MAX_CACHED_INDICES = 1 << 23
"""64 MiB of int64."""


class AccessSets:
    """Access sets of instructions, computed once for equal ones."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._cache: dict[tuple[Loops, bytes, SetAcc | None], LoopAccess] = {}
        self._cached_indices = 0

    def transfer(self, instruction: Transfer) -> tuple[Touch, ...]:
        """Return the accessed scratchpad elements, except for RES."""
        return tuple(
            Touch(pad.name, instruction.FILLS, slice(begin, begin + elements))
            for pad, begin, elements in sram_ranges(instruction)
            if elements
        )

    def loops(
        self, instruction: Loops, words: npt.NDArray[np.uint32], setting: SetAcc = NOTHING_SET
    ) -> LoopAccess:
        tapped = any(operand.tapped_by(instruction) for operand in instruction.OPERANDS)
        key = without_tokens(instruction), words.tobytes(), without_tokens(setting) if tapped else None
        found = self._cache.get(key)
        if found is None:
            found = self._loops(instruction, decode_uops(words, self.config), setting)
            self._cached_indices += index_count(found.touches)
            if self._cached_indices > MAX_CACHED_INDICES:
                self._cache.clear()
                self._cached_indices = index_count(found.touches)
            self._cache[key] = found
        return found

    def _loops(self, instruction: Loops, uops: UopArray, setting: SetAcc) -> LoopAccess:
        missing = taps_fault(instruction, setting)
        if missing is not None:
            return LoopAccess((), (0, missing))
        fault = index_fault(instruction, uops, self.config, setting)
        if fault is not None:
            return LoopAccess((), fault)
        shape = loop_shape(instruction, self.config, setting)
        found = [Touch(UOP.name, False, slice(instruction.uop_begin, instruction.uop_end))]
        used = [operand for operand in instruction.OPERANDS if operand.used_by(instruction)]
        elements = {o.name: as_elements(reached(uops, shape, COLUMNS[o.name])) for o in used}
        for write in (False, True):
            for operand in used:
                if operand.writes if write else operand.read_by(instruction):
                    found.append(Touch(operand.memory.name, write, elements[operand.name]))
        return LoopAccess(tuple(found), None)


@lru_cache(maxsize=1)
def access_sets(config: Config) -> AccessSets:
    """Return the sets that this process has computed, because a chain repeats the instructions of its layers,
    and its proof those of the chain."""
    return AccessSets(config)


def element_classes(
    sets: Sequence[Elements], classes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
    """Refine a partition of elements into classes, so that every set is a union of classes.

    Returns:
        The class of each element, int64[elements], and the sorted classes of each set.
    """
    classes = classes.copy()
    fresh = int(classes.max(initial=0)) + 1
    for elements in sets:
        kinds, classes_in = np.unique(classes[elements], return_inverse=True)
        classes[elements] = fresh + classes_in
        fresh += len(kinds)
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    return classes, [distinct(classes[elements]) for elements in sets]


def residual_touches(instructions: Sequence[Instruction], config: Config) -> dict[int, Touch]:
    """Return the written or taken elements of RES by index of the instruction.

    Faulty instructions access none.
    """
    found: dict[int, Touch] = {}
    if not config.post:
        return found
    depth = RES.depth(config)
    moved = {True: 0, False: 0}
    faults = instruction_faults(instructions, config)
    for index, (instruction, fault) in enumerate(zip(instructions, faults, strict=True)):
        change = residual_change(instruction)
        if change and fault is None:
            fills = change > 0
            elements = np.arange(moved[fills], moved[fills] + abs(change), dtype=np.intp) % depth
            found[index] = Touch(RES.name, fills, as_elements(np.sort(elements)))
            moved[fills] += abs(change)
    return found


def dram_rows(instruction: Instruction, config: Config) -> DramRows | None:
    if not isinstance(instruction, Transfer):
        return None
    route = instruction.route
    if route is None or not (instruction.x_size and instruction.y_size):
        return None
    element = route.element_bytes(config)
    start = config.mem_base + instruction.dram_base * element
    return DramRows(start, instruction.y_size, instruction.x_size * element, instruction.x_stride * element)

"""Which elements of which memory an instruction reads and writes.

The compiler places tokens by these sets, the token check proves them sufficient, and the tests
compare them with the addresses that execution touches.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.arrays import distinct
from accel.core.config import Config
from accel.core.faults import (
    INDEX_CAUSES,
    NOTHING_SET,
    Fault,
    dram_element_bytes,
    dram_span,
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
from accel.core.memories import RES, UOP

Elements = slice | npt.NDArray[np.intp]
"""Scratchpad elements: a contiguous range, or sorted indices."""


class Touch(NamedTuple):
    """Elements of one scratchpad that an instruction reads or writes."""

    memory: str
    write: bool
    elements: Elements


class DramRows(NamedTuple):
    """``rows`` runs of ``row_bytes`` bytes, ``stride`` bytes apart."""

    start: int
    rows: int
    row_bytes: int
    stride: int


COLUMNS = {name: column for column, name in enumerate(field_specs(MicroOp))}
"""Operands by name as columns of decoded micro-ops: dst 0, src 1, wgt 2."""


class LoopShape(NamedTuple):
    """The part of a GEMM or ALU instruction that its indices follow from, by columns of micro-ops."""

    iter_out: int
    iter_in: int
    factors: tuple[int, int, int, int, int, int]
    """dst out, dst in, src out, src in, wgt out, wgt in; zero if there is no such operand."""
    checked: tuple[bool, bool, bool]
    """Whether dst, src, wgt are used."""
    depths: tuple[int, int, int]
    taps: int = 1
    """Elements that an index of src stands for."""
    step: int = 0
    """From one of them to the next."""


def loop_shape(instruction: Loops, config: Config, setting: SetAcc = NOTHING_SET) -> LoopShape:
    """Iterations, factors and used operands of a GEMM or ALU instruction.

    Args:
        instruction: one that is not at fault by itself.
        config: the machine.
        setting: the SET.ACC before it; a depthwise MAC needs its taps.
    """
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
    """Sorted distinct indices of one operand (0 dst, 1 src, 2 wgt) over all iterations.

    Cost grows with the scratchpad's depth, not with the number of micro-ops executed. Indices beyond
    the depth are represented by at least one such index.
    """
    depth = shape.depths[operand]
    found = _distinct(uops[:, operand])
    for count, factor in (
        (shape.iter_out, shape.factors[2 * operand]),
        (shape.iter_in, shape.factors[2 * operand + 1]),
        (shape.taps if operand == COLUMNS["src"] else 1, shape.step),
    ):
        if factor and count > 1:
            steps = np.arange(min(count, depth // factor + 2), dtype=np.int64) * factor
            found = _distinct((found[:, None] + steps).reshape(-1))
            found = found[: np.searchsorted(found, depth) + 1]
    return found.astype(np.intp)


def _distinct(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sorted distinct values, none of them far beyond a scratchpad's depth."""
    return np.flatnonzero(np.bincount(indices))


def index_fault(
    instruction: Loops, uops: UopArray, config: Config, setting: SetAcc = NOTHING_SET
) -> tuple[int, Fault] | None:
    """The first micro-op executed whose dst, src or wgt index is out of range; of several taps, the last.

    Returns:
        Its number in order of execution and the fault, or None. Operands that are not used are not
        checked.
    """
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
    """The highest index of one operand over all iterations; factors are not negative."""
    out, inner = shape.factors[2 * operand], shape.factors[2 * operand + 1]
    return (
        int(_last_taps(uops, shape, operand).max()) + out * (shape.iter_out - 1) + inner * (shape.iter_in - 1)
    )


def _last_taps(uops: UopArray, shape: LoopShape, operand: int) -> npt.NDArray[np.int64]:
    """The indices of one operand in micro-ops; of several taps, the last's."""
    column: npt.NDArray[np.int64] = uops[:, operand]
    reach = (shape.taps - 1) * shape.step if operand == COLUMNS["src"] else 0
    return column + reach if reach else column


def _first_beyond(column: npt.NDArray[np.int64], shape: LoopShape, operand: int) -> tuple[int, int]:
    """Number and index of the first micro-op beyond the depth; factors are not negative."""
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
    """A slice where the sorted ``indices`` are contiguous."""
    if len(indices) and int(indices[-1]) - int(indices[0]) + 1 == len(indices):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


class LoopAccess(NamedTuple):
    """What a GEMM or ALU instruction touches with the micro-ops it finds, and what is wrong with them."""

    touches: tuple[Touch, ...]
    fault: tuple[int, Fault] | None
    """Number of the first bad micro-op in order of execution, and its fault; as :func:`index_fault`."""


class AccessSets:
    """Access sets of one configuration's instructions; equal GEMM and ALU instructions are looked at once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._cache: dict[tuple[Loops, bytes, SetAcc | None], LoopAccess] = {}

    def transfer(self, instruction: Transfer) -> tuple[Touch, ...]:
        """Scratchpad elements that a LOAD writes or a STORE reads; none if it does not know the memory id.

        The elements of RES are left out: which ones they are follows from the instructions before, and only
        the store unit has to do with them.
        """
        return tuple(
            Touch(pad.name, instruction.FILLS, slice(begin, begin + elements))
            for pad, begin, elements in sram_ranges(instruction)
            if elements
        )

    def loops(
        self, instruction: Loops, words: npt.NDArray[np.uint32], setting: SetAcc = NOTHING_SET
    ) -> LoopAccess:
        """Scratchpad elements that a GEMM or ALU instruction touches.

        Args:
            instruction: it must not be empty (``uop_count`` > 0).
            words: the encoded micro-ops ``[uop_begin, uop_end)``.
            setting: the SET.ACC before it, as :func:`~accel.core.faults.acc_settings` has it.
        """
        tapped = any(operand.tapped_by(instruction) for operand in instruction.OPERANDS)
        key = without_tokens(instruction), words.tobytes(), without_tokens(setting) if tapped else None
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._loops(instruction, decode_uops(words, self.config), setting)
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


def element_classes(
    sets: Sequence[Elements], classes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
    """Classes of elements that no set tells apart, so that a set of elements is a set of classes.

    Args:
        sets: of elements of one memory.
        classes: classes that are kept apart anyway, from 0 on, int64[elements].

    Returns:
        The class of each element, from 0 on, int64[elements], and the classes of each set, in order.
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
    """The elements of RES that each LOAD fills and each STORE takes, by the instruction's place in a program.

    Which ones they are follows from the program's order: the k-th one that is loaded in a run is element k
    modulo the depth. What is at fault touches none.
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
    """DRAM bytes that a transfer reads (LOAD) or writes (STORE); None if it touches none."""
    if not isinstance(instruction, Transfer):
        return None
    start, stop = dram_span(instruction, config)
    if start == stop:
        return None
    element = dram_element_bytes(instruction, config)
    return DramRows(start, instruction.y_size, instruction.x_size * element, instruction.x_stride * element)

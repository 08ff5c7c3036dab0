"""Comments of a listing."""

from collections.abc import Iterator

import numpy as np

from accel.assembly.symbolic_names import stage_label
from accel.core.alu_operations import operation_of_code
from accel.core.fault_causes import (
    Fault,
    acc_settings,
    fetch_fault,
    instruction_faults,
    residual_change,
    sram_ranges,
)
from accel.core.instruction_access import AccessSets, Elements, LoopAccess, Touch, loop_shape
from accel.core.isa import (
    Alu,
    Finish,
    Instruction,
    Load,
    Loops,
    Mac,
    Memory,
    Products,
    Set,
    SetAcc,
    SetBytes,
    SetOut,
    SetSum,
    Store,
    Transfer,
    decode_uops,
)
from accel.core.scratchpad_specs import RES
from accel.image.image import Image
from accel.proof.shared_dram import SharedDram
from accel.proof.uop_memory import UopMemory


class Annotator:
    """Comments on instructions in order, since it follows the micro-op memory."""

    def __init__(self, image: Image) -> None:
        self._provenance = image.provenance
        self._config = image.config
        self._count = len(image.instructions)
        self._sets = AccessSets(image.config)
        self._uops = UopMemory(image.config, image.dram(), image.start.contents)
        self._faults = faults = instruction_faults(image.instructions, self._config)
        self._settings = acc_settings(image.instructions)
        self._shared = SharedDram(
            [Finish() if fault else one for one, fault in zip(image.instructions, faults, strict=True)],
            self._config,
        )
        self._stored = np.zeros(self._shared.segments, dtype=bool)

    def comment(self, index: int, instruction: Instruction) -> str:
        """Return stage and action of an instruction, or its error."""
        fault = self._fault(index, instruction)
        if fault is not None:
            return f"{fault.cause.label}: {fault.message}"
        stage = stage_label(self._provenance, index)
        if isinstance(instruction, Transfer):
            self._follow(index, instruction)
            return stage + self._transfer(instruction)
        if isinstance(instruction, Loops):
            return stage + self._loops(index, instruction)
        if isinstance(instruction, Set):
            return setting(instruction)
        return ""

    def _fault(self, index: int, instruction: Instruction) -> Fault | None:
        found = fetch_fault(instruction, index, self._count, self._config)
        return found or self._faults[index]

    def touches(self, index: int, instruction: Instruction) -> tuple[Touch, ...]:
        """Return the accessed scratchpad elements as far as known, instead of a comment."""
        if self._fault(index, instruction):
            return ()
        if isinstance(instruction, Transfer):
            self._follow(index, instruction)
            return self._sets.transfer(instruction)
        if not isinstance(instruction, Loops) or not instruction.uop_count:
            return ()
        words = self._uops.words(instruction)
        return () if words is None else self._sets.loops(instruction, words, self._settings[index]).touches

    def steps(self, index: int, instruction: Instruction, most: int) -> Iterator[str]:
        """Yield the first ``most`` micro-ops with the loops' offsets."""
        if not isinstance(instruction, Loops) or not instruction.uop_count:
            return
        if self._faults[index] is not None:
            return
        words = self._uops.words(instruction)
        if words is None:
            return
        uops = decode_uops(words, self._config)
        factors = np.array(loop_shape(instruction, self._config).factors).reshape(3, 2)
        for number in range(min(most, instruction.uop_count)):
            loop, u = divmod(number, len(uops))
            i, j = divmod(loop, instruction.iter_in)
            dst, src, wgt = (uops[u] + factors @ (i, j)).tolist()
            if isinstance(instruction, Products):
                yield product_step(instruction, dst, src, wgt, self._settings[index])
            elif isinstance(instruction, Alu):
                yield alu_step(instruction, f"acc[{dst}]", f"acc[{src}]")
        if instruction.uop_count > most:
            yield f"... {instruction.uop_count - most:,} more"

    def _follow(self, index: int, instruction: Transfer) -> None:
        """Track the micro-op memory, and its sources in DRAM that STOREs may have changed."""
        segments = self._shared.elements(index)
        if segments is not None and isinstance(instruction, Store):
            self._stored[segments] = True
        self._uops.load(instruction, overwritten=segments is not None and bool(self._stored[segments].any()))

    def _transfer(self, instruction: Transfer) -> str:
        if not instruction.sram_elements:
            return "tokens only" if not instruction.x_size else "moves nothing"
        found = [f"{pad} {_range(begin, begin + n - 1)}" for pad, begin, n in sram_ranges(instruction)]
        pads = instruction.sram_elements - instruction.x_size * instruction.y_size
        if isinstance(instruction, Load) and pads:
            found.append(f"{pads} of them zero")
        change = residual_change(instruction)
        if change:
            found.append(f"{abs(change)} {'into' if change > 0 else 'out of'} {RES}")
        return ", ".join(found)

    def _loops(self, index: int, instruction: Loops) -> str:
        if not instruction.uop_count:
            return "no micro-ops"
        count = f"{instruction.uop_count:,} micro-op{'s' if instruction.uop_count > 1 else ''}"
        words = self._uops.words(instruction)
        if words is None:
            return f"{count}, known only at run time"
        access = self._sets.loops(instruction, words, self._settings[index])
        if access.fault is not None:
            return f"{access.fault[1].cause.label}: {access.fault[1].message}"
        return f"{count}: {_effect(instruction, access)}"


def setting(instruction: Set) -> str:
    if isinstance(instruction, SetSum):
        return f"sum * 2^-shift {_bounded(instruction)}; factors {_factors(instruction)}"
    if not isinstance(instruction, SetBytes | SetAcc | SetOut):
        return ""
    kind = "uint8" if instruction.unsigned else "int8"
    if isinstance(instruction, SetBytes):
        name = Memory(instruction.memory).name.lower()
        return f"bytes of {name} are {kind}" + (f", less {instruction.zero}" if instruction.zero else "")
    if isinstance(instruction, SetAcc):
        taps = f", depthwise MACs have {instruction.taps} taps, step {instruction.step}"
        return f"bytes of acc are {kind}" + (taps if instruction.taps else "")
    tables = "; tables are uint8" if instruction.table_unsigned else ""
    return f"acc * scale {_bounded(instruction)}; residuals are {kind}, shift {instruction.shift}{tables}"


def _bounded(instruction: SetOut | SetSum) -> str:
    return f"plus {instruction.zero} within {instruction.low}..{instruction.high}"


def _factors(instruction: SetSum) -> str:
    return f"{instruction.left_multiplier} and {instruction.right_multiplier}"


def product_step(instruction: Products, dst: int, src: int, wgt: int, setting: SetAcc) -> str:
    if not instruction.multiplies:
        return f"acc[{dst}] = 0"
    taps = f"inp[{src}]"
    if isinstance(instruction, Mac) and instruction.depthwise:
        last = src + setting.reach
        taps = f"inp[{src}..{last}:{setting.step}]" if setting.reach else taps
        return f"acc[{dst}] {_assignment(instruction)} {taps} . wgt[{wgt}]"
    return f"acc[{dst}] {_assignment(instruction)} {taps} * wgt[{wgt}]"


def _assignment(instruction: Products) -> str:
    return "+=" if instruction.accumulates else "="


def alu_step(instruction: Alu, dst: str, src: str) -> str:
    second = str(instruction.imm) if instruction.use_imm else src
    operation = operation_of_code(instruction.alu_op)
    if not operation.symbol:
        return f"{dst} = {operation.name}({dst}, {second})"
    return f"{dst} = {dst} {operation.symbol} {second}"


def _effect(instruction: Loops, access: LoopAccess) -> str:
    named = {(t.memory, t.write): t for t in access.touches}
    acc = _elements(named["acc", True])
    if isinstance(instruction, Products):
        if not instruction.multiplies:
            return f"{acc} = 0"
        sign = "." if isinstance(instruction, Mac) and instruction.depthwise else "*"
        factors = f"{_elements(named['inp', False])} {sign} {_elements(named['wgt', False])}"
        return f"{acc} {_assignment(instruction)} {factors}"
    assert isinstance(instruction, Alu)
    sources = [t for t in access.touches if t.memory == "acc" and not t.write]
    return alu_step(instruction, acc, _elements(sources[-1]))


def _elements(touch: Touch) -> str:
    first, last = _ends(touch.elements)
    count = last - first + 1 if isinstance(touch.elements, slice) else len(touch.elements)
    gaps = "" if count == last - first + 1 else f" ({count} of them)"
    return f"{touch.memory} {_range(first, last)}{gaps}"


def _ends(elements: Elements) -> tuple[int, int]:
    if isinstance(elements, slice):
        return int(elements.start), int(elements.stop) - 1
    return int(elements[0]), int(elements[-1])


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}..{last}"

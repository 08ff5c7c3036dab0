r"""How a program's first transfers share the port.

The compute unit takes one LOAD after the other: first the micro-ops, then, say, a bias. By the time it asks
for the second one, the load unit has been granted all that its buffers hold, and the first GEMM waits for
data that it does not need yet. ``start_after`` holds a LOAD back, by a token, till the one of the bias is on
its way.

    compute  LOAD.UOP   GEMM reset ------------> LOAD.ACC   ALU   GEMM
    load     LOAD.INP                    token \-> LOAD.WGT  LOAD.INP  LOAD.WGT

The store unit's parameters are not needed before the first outputs are finished. So they are asked for behind
what the first products need.

A SET waits till all LOADs before it have retired, and holds back those behind it. So the load unit's first
one, which says how inputs are read, comes before the LOADs of weights, whose bytes are as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from accel.base.distinct import Distinct
from accel.compiler.nest.nest import Buffer
from accel.compiler.target.registry import Emitted
from accel.core.isa import Instruction, Load, Memory, Set, Store, Unit


def parameters_last(emitted: Sequence[Emitted]) -> list[Emitted]:
    """The same program with the store unit's first LOADs right in front of its first STORE."""
    own = (n for n, one in enumerate(emitted) if one.instruction.unit is Unit.STORE)
    first = next((n for n in own if isinstance(emitted[n].instruction, Store)), 0)
    loads = [one for one in emitted[:first] if _loads_for_stores(one.instruction)]
    others = [one for one in emitted[:first] if not _loads_for_stores(one.instruction)]
    return [*others, *loads, *emitted[first:]]


def settings_first(emitted: Sequence[Emitted]) -> list[Emitted]:
    """The same program with the load unit's first SET in front of the LOADs of weights before it."""
    own = [n for n, one in enumerate(emitted) if one.instruction.unit is Unit.LOAD]
    place = next((n for n in own if isinstance(emitted[n].instruction, Set)), own[0] if own else 0)
    before = [emitted[n].instruction for n in own if n < place]
    if not before or any(isinstance(one, Load) and one.memory is not Memory.WGT for one in before):
        return list(emitted)
    return [*emitted[: own[0]], emitted[place], *emitted[own[0] : place], *emitted[place + 1 :]]


def _loads_for_stores(instruction: Instruction) -> bool:
    return isinstance(instruction, Load) and instruction.unit is Unit.STORE


def held_back(
    program: Distinct[Instruction],
    first_loads: Mapping[Buffer, Instruction],
    starts: Sequence[tuple[Buffer, Buffer]],
) -> dict[int, int]:
    """For instructions of the load unit that are held back: the one of the compute unit that must come first.

    Args:
        program: its instructions.
        first_loads: the first LOAD into each buffer.
        starts: pairs of a buffer of the load unit and the one of the compute unit whose first LOAD is to be
            asked for before.
    """
    numbers: dict[int, int] = {}
    for number, instruction in enumerate(program.every):
        numbers.setdefault(id(instruction), number)

    def place(buffer: Buffer) -> int:
        return int(np.argmax(program.places == numbers[id(first_loads[buffer])]))

    found = {}
    for held, ahead in starts:
        if held not in first_loads or ahead not in first_loads:
            continue
        late, early = place(held), place(ahead)
        before = program.where(lambda one: one.unit is Unit.COMPUTE)
        before = before[before < early]
        if len(before) and before[-1] < late:
            found[late] = int(before[-1])
    return found

r"""How a program's first transfers share the port.

The compute unit takes one LOAD after the other: first the micro-ops, then, say, a bias. By the time it asks
for the second one, the load unit has been granted all that its buffers hold, and the first GEMM waits for
data that it does not need yet. ``start_after`` holds a LOAD back, by a token, till the one of the bias is on
its way.

    compute  LOAD.UOP   GEMM reset ------------> LOAD.ACC   ALU   GEMM
    load     LOAD.INP                    token \-> LOAD.WGT  LOAD.INP  LOAD.WGT
"""

from collections.abc import Mapping, Sequence

from accel.compiler.nest.nest import Buffer
from accel.core.isa import Instruction, Unit


def held_back(
    instructions: Sequence[Instruction],
    first_loads: Mapping[Buffer, Instruction],
    starts: Sequence[tuple[Buffer, Buffer]],
) -> dict[int, int]:
    """For instructions of the load unit that are held back: the one of the compute unit that must come first.

    Args:
        instructions: in program order.
        first_loads: the first LOAD into each buffer.
        starts: pairs of a buffer of the load unit and the one of the compute unit whose first LOAD is to be
            asked for before.
    """
    places: dict[int, int] = {}
    for n, instruction in enumerate(instructions):
        places.setdefault(id(instruction), n)
    found = {}
    for held, ahead in starts:
        if held not in first_loads or ahead not in first_loads:
            continue
        late, early = places[id(first_loads[held])], places[id(first_loads[ahead])]
        before = [n for n in range(early) if instructions[n].unit is Unit.COMPUTE]
        if before and before[-1] < late:
            found[late] = before[-1]
    return found

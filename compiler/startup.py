"""How a program's first transfers share the port.

The compute unit takes one LOAD after the other: the micro-ops, then, say, a bias. By the time it asks for
the last one, the load unit has been granted all that its buffers hold, and the first GEMM waits for data
that it does not need yet. So one LOAD is held back, by a token, till the compute unit's last one is on its
way: the last that the first GEMM waits for, or the one behind it.

    compute  LOAD.UOP   GEMM reset ------------> LOAD.ACC   ALU   GEMM
    load     LOAD.INP                    token \\-> LOAD.WGT  LOAD.INP  LOAD.WGT
"""

from collections.abc import Sequence

from accel.config import Config
from accel.faults import dram_element_bytes
from accel.isa import Gemm, Instruction, Load, Loops, Unit


def held_back(instructions: Sequence[Instruction], config: Config) -> dict[int, int]:
    """The LOAD to be held back, and the instruction of the compute unit that it has to come after; nothing
    if the program does not start with several LOADs in the compute unit.

    Args:
        instructions: in program order.
        config: the machine.
    """
    first = next((n for n, i in enumerate(instructions) if isinstance(i, Gemm) and not i.reset), 0)
    compute = [n for n in range(first) if instructions[n].unit is Unit.COMPUTE]
    loads = [n for n, i in enumerate(instructions) if i.unit is Unit.LOAD]
    needed = [n for n in loads if n < first]
    late = max((k for k, n in enumerate(compute) if isinstance(instructions[n], Load)), default=0)
    if not late or not needed:
        return {}

    def cycles(numbers: Sequence[int]) -> float:
        return sum(_cycles(instructions[n], config) for n in numbers)

    last = holds_last(
        config,
        before=cycles(compute[:late]),
        behind=cycles(compute[late + 1 :]),
        needed=cycles(needed),
        last=cycles(needed[-1:]),
    )
    held = needed[-1] if last else next((n for n in loads if n > first), None)
    return {held: compute[late - 1]} if held is not None and held > compute[late - 1] else {}


def holds_last(config: Config, *, before: float, behind: float, needed: float, last: float) -> bool:
    """Whether it is the last LOAD that the first GEMM waits for that is held back, not the one behind it.

    Args:
        config: the machine.
        before, behind: cycles that the compute unit spends in front of and behind its last LOAD.
        needed: beats of all LOADs that the first GEMM waits for.
        last: beats of the last of them.
    """
    ready = before + config.read_latency
    return ready + max(behind, last) < max(ready, config.read_latency + needed) + behind


def _cycles(instruction: Instruction, config: Config) -> float:
    """About what an instruction takes once its data comes."""
    if isinstance(instruction, Load):
        size = dram_element_bytes(instruction.memory, config)
        return instruction.y_size * instruction.x_size * size / config.bus_bytes
    return instruction.uop_count if isinstance(instruction, Loops) else 0

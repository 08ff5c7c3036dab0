"""A place for instructions in DRAM."""

from collections.abc import Iterable

from accel.base.errors import ProgramError
from accel.core.config import PAGE_BYTES, Config
from accel.core.fault_causes import dram_span, instruction_fault
from accel.core.isa import Instruction, Transfer


def free_address(
    config: Config,
    instructions: Iterable[Instruction],
    used: Iterable[tuple[int, int]],
    nbytes: int,
    name: str,
) -> int:
    """Return the offset of instructions: the first free pages.

    Args:
        used: start and stop of other ranges in the window.
    """
    base = config.mem_base
    taken = [(base + start, base + stop) for start, stop in used]
    taken += [
        dram_span(one, config)
        for one in instructions
        if isinstance(one, Transfer) and one.x_size and instruction_fault(one, config) is None
    ]
    address = base
    for start, stop in sorted(taken):
        if start >= address + nbytes:
            break
        address = max(address, -(-stop // PAGE_BYTES) * PAGE_BYTES)
    if address + nbytes > base + config.mem_size:
        raise ProgramError(f"{name} leaves no room for its instructions in the DRAM window")
    return address

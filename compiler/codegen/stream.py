"""From what a nest emits to an encoded program: micro-ops and tokens, then the link step.

Up to the end instructions refer to parts of DRAM. That two of them touch the same bytes does not depend on
where the parts lie, as long as these lie apart; so dependences are analysed at the default places.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel.compiler.codegen.dependence import CARRIER, insert_tokens
from accel.compiler.codegen.emit import Emission
from accel.compiler.codegen.memory import DramMap
from accel.compiler.codegen.origins import Origins
from accel.compiler.codegen.startup import held_back
from accel.compiler.codegen.uops import MICRO_OPS, place_uops
from accel.compiler.nest.nest import Buffer
from accel.core.config import INSTRUCTION_BYTES
from accel.core.isa import Finish, Instruction, decode, encode
from accel.image.link import Addresses
from accel.image.provenance import Kind, Provenance, Statement
from accel.image.references import NO_PART, References
from accel.image.tensor import array_bytes
from accel.proof.shared_dram import SharedDram


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A program at its default place.

    Attributes:
        code: the instructions.
        code_offset: of the first one from the start of the window.
        uops: the micro-ops that it loads.
        uop_offset: of the first of them.
        references: which part of DRAM each instruction means.
        provenance: where it comes from.
    """

    code: bytes
    code_offset: int
    uops: bytes
    uop_offset: int
    references: References
    provenance: Provenance


def linked_stream(emission: Emission, starts: Sequence[tuple[Buffer, Buffer]], origins: Origins) -> Stream:
    """The program of what was emitted.

    Args:
        emission: of a nest.
        starts: :attr:`~accel.compiler.nest.nest.Nest.starts`.
        origins: of its statements.

    Raises:
        ScheduleError: micro-ops do not fit their memory, or parts DRAM.
    """
    config, dram = emission.config, emission.dram
    placed = place_uops(emission.emitted, config)
    uop_part = dram.add("micro_ops", placed.words.nbytes)
    meant = [uop_part if n == MICRO_OPS else emission.emitted[n].part for n in placed.sources]
    shared = None
    if emission.rereads:
        shared = SharedDram(decode(_linked(placed.instructions, meant, dram), config), config)
    ordered = insert_tokens(
        placed.instructions,
        config,
        placed.words,
        shared,
        held_back(placed.instructions, emission.first_loads, starts),
    )
    program = [*ordered.instructions, Finish()]
    of = [*(NO_PART if n == CARRIER else meant[n] for n in ordered.sources), NO_PART]
    code = _linked(program, of, dram)
    code_part = dram.add("code", len(code), alignment=INSTRUCTION_BYTES)
    return Stream(
        code=code,
        code_offset=dram.parts[code_part].offset,
        uops=array_bytes(placed.words).tobytes(),
        uop_offset=dram.parts[uop_part].offset,
        references=References(parts=tuple(dram.parts), of=np.array(of, dtype=np.int32)),
        provenance=_provenance(emission, placed.sources, ordered.sources, origins),
    )


def _linked(instructions: Sequence[Instruction], of: Sequence[int], dram: DramMap) -> bytes:
    """The encoded instructions with the addresses that follow from the parts' places."""
    places = [part.offset for part in dram.parts]
    return Addresses(instructions, of, dram.config).moved(encode(instructions, dram.config), places)


_SPECIAL: tuple[Kind, ...] = ("micro-ops", "tokens", "finish")


def _provenance(
    emission: Emission, placed: Sequence[int], ordered: Sequence[int], origins: Origins
) -> Provenance:
    """Where the instructions come from, FINISH behind them included.

    Args:
        emission: of the nest.
        placed: for each instruction before tokens its number in what was emitted.
        ordered: for each instruction but FINISH its number among those.
        origins: of the statements.
    """
    micro_ops, tokens, finish = (len(emission.statements) + n for n in range(len(_SPECIAL)))

    def number(instruction: int) -> int:
        if instruction == CARRIER:
            return tokens
        source = placed[instruction]
        return micro_ops if source == MICRO_OPS else emission.emitted[source].statement

    numbers = [*map(number, ordered), finish]
    used = list(dict.fromkeys(numbers))
    ranks = {found: rank for rank, found in enumerate(used)}
    return Provenance(
        statements=tuple(
            Statement(kind=_SPECIAL[n - micro_ops])
            if n >= micro_ops
            else origins.statement(*emission.statements[n])
            for n in used
        ),
        of=np.array([ranks[n] for n in numbers], dtype=np.int32),
    )

"""From what a nest emits to an encoded program: micro-ops and tokens, then the link step.

Up to the end instructions refer to parts of DRAM. That two of them touch the same bytes does not depend on
where the parts lie, as long as these lie apart; so dependences are analysed at the default places.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel.base.distinct import Distinct
from accel.compiler.codegen.dependence import insert_tokens
from accel.compiler.codegen.emit import Emission
from accel.compiler.codegen.memory import DramMap
from accel.compiler.codegen.origins import Origins
from accel.compiler.codegen.startup import held_back
from accel.compiler.codegen.uops import PlacedUops, place_uops
from accel.compiler.nest.nest import Buffer
from accel.core.config import INSTRUCTION_BYTES
from accel.core.conflicts import Ints, Numbers
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
    meant = _by_source(placed.items.column(lambda one: one.part), placed.sources, uop_part)
    shared = None
    if emission.rereads:
        shared = SharedDram(decode(_linked(placed.program, meant, dram), config), config)
    ordered = insert_tokens(
        placed.program,
        config,
        placed.words,
        shared,
        held_back(placed.program, emission.first_loads, starts),
    )
    program = ordered.program.followed_by(Finish())
    of = np.append(_by_source(meant, ordered.sources, NO_PART), NO_PART)
    code = _linked(program, of, dram)
    code_part = dram.add("code", len(code), alignment=INSTRUCTION_BYTES)
    return Stream(
        code=code,
        code_offset=dram.parts[code_part].offset,
        uops=array_bytes(placed.words).tobytes(),
        uop_offset=dram.parts[uop_part].offset,
        references=References(parts=tuple(dram.parts), of=of.astype(np.int32)),
        provenance=_provenance(emission, placed, ordered.sources, origins),
    )


def _by_source(values: Ints, sources: Numbers, instead: int) -> Ints:
    """What belongs to the source of each instruction; ``instead`` where it has none."""
    known = sources >= 0
    found = np.full(len(sources), instead, dtype=np.int64)
    found[known] = values[sources[known]]
    return found


def _linked(program: Distinct[Instruction], of: Ints, dram: DramMap) -> bytes:
    """The encoded instructions with the addresses that follow from the parts' places."""
    places = [part.offset for part in dram.parts]
    return Addresses(program, of, dram.config).moved(encode(program, dram.config), places)


_SPECIAL: tuple[Kind, ...] = ("micro-ops", "tokens", "finish")


def _provenance(emission: Emission, placed: PlacedUops, ordered: Numbers, origins: Origins) -> Provenance:
    """Where the instructions come from, FINISH behind them included.

    Args:
        emission: of the nest.
        placed: its micro-ops.
        ordered: for each instruction but FINISH its number among those of ``placed``.
        origins: of the statements.
    """
    micro_ops, tokens, finish = (len(emission.statements) + n for n in range(len(_SPECIAL)))
    statements = _by_source(placed.items.column(lambda one: one.statement), placed.sources, micro_ops)
    numbers = np.append(_by_source(statements, ordered, tokens), finish)
    used = Distinct.chosen(range(finish + 1), numbers)
    return Provenance(
        statements=tuple(
            Statement(kind=_SPECIAL[n - micro_ops])
            if n >= micro_ops
            else origins.statement(*emission.statements[n])
            for n in used.every
        ),
        of=used.places.astype(np.int32),
    )

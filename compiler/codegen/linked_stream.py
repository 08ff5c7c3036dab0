"""From emitted instructions to an encoded program: micro-ops, tokens, and the link step.

Instructions refer to parts of DRAM until the end. Dependences are analysed at the default addresses, since
parts never overlap.
"""

import numpy as np
from msgspec import Struct

from accel.base.interned_sequence import Distinct
from accel.compiler.codegen.dram_map import DramMap
from accel.compiler.codegen.micro_op_placement import PlacedUops, place_uops
from accel.compiler.codegen.nest_emission import Emission
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.codegen.statement_origins import Origins
from accel.compiler.codegen.token_insertion import insert_tokens
from accel.core.config import INSTRUCTION_BYTES
from accel.core.isa import Finish, Instruction, decode, encode
from accel.core.program_conflicts import Ints, Numbers
from accel.image.dram_references import NO_PART, References
from accel.image.image_tensor import array_bytes
from accel.image.linker import Addresses
from accel.image.provenance import Kind, Provenance, Statement
from accel.proof.shared_dram import SharedDram


class Stream(Struct, frozen=True, kw_only=True):
    """A program at its default addresses.

    Attributes:
        code_offset: offset of the first instruction from the start of the window.
        references: the part of DRAM that each instruction accesses.
    """

    code: bytes
    code_offset: int
    uops: bytes
    uop_offset: int
    references: References
    provenance: Provenance


def linked_stream(emission: Emission, reordered: EmittedProgram, origins: Origins) -> Stream:
    """Return the linked program of the emitted instructions."""
    config, dram = emission.state.config, emission.dram
    placed = place_uops(reordered.emitted, config)
    uop_part = dram.add("micro_ops", placed.words.nbytes)
    meant = _by_source(placed.items.column(lambda one: one.part), placed.sources, uop_part)
    shared = None
    if emission.state.rereads:
        shared = SharedDram(decode(_linked(placed.program, meant, dram), config), config)
    ordered = insert_tokens(
        placed.program,
        config,
        placed.words,
        shared,
        placed.renumbered(reordered.waits),
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
    known = sources >= 0
    found = np.full(len(sources), instead, dtype=np.int64)
    found[known] = values[sources[known]]
    return found


def _linked(program: Distinct[Instruction], of: Ints, dram: DramMap) -> bytes:
    places = [part.offset for part in dram.parts]
    return Addresses(program, of, dram.config).moved(encode(program, dram.config), places)


_SPECIAL: tuple[Kind, ...] = ("micro-ops", "tokens", "finish")


def _provenance(emission: Emission, placed: PlacedUops, ordered: Numbers, origins: Origins) -> Provenance:
    """``ordered`` has the instructions' numbers in ``placed``."""
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

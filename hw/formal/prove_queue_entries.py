"""Proof that queue entries describe LOADs and STOREs correctly."""

from functools import partial
from typing import Any

from amaranth.hdl import Mux, Value

from accel.core.config import NAMED, Config
from accel.core.isa import Load, Opcode, Store, Unit
from accel.core.token_rules import WORKERS
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import view
from accel.hw.formal.claims import Claims, Proof
from accel.hw.units.dispatch import Dispatch


def entry_checks(entry: Any, unit: Unit, config: Config) -> tuple[Value, Value]:
    """Return whether an entry is right about its instruction's data, and names a memory of its unit."""
    transfer = view(Load, config, entry.word)
    is_load = transfer.opcode == Opcode.LOAD
    moves = (is_load | (transfer.opcode == Opcode.STORE)) & (transfer.x_size != 0) & (transfer.y_size != 0)
    loads, stores = (max(1, len(kinds_of(cls, unit, config))) for cls in (Load, Store))
    return entry.moves.data == moves, entry.moves.kind < Mux(is_load, loads, stores)


def entries(config: Config) -> Claims:
    component = Dispatch(config)
    claims = Claims(component)
    for unit in WORKERS:
        enqueue = port_of(component, unit)
        data, kind = entry_checks(enqueue.data, unit, config)
        claims.claim(f"an entry states whether there is data, {unit.label}", ~enqueue.push | data)
        claims.claim(f"an entry has a valid memory, {unit.label}", ~enqueue.push | kind)
    return claims


PROOFS = tuple(
    Proof(
        name=f"entries of {name}",
        statement="entries state which LOADs and STOREs have data, and their memory",
        build=partial(entries, NAMED[name]),
    )
    for name in ("tiny", "tiny-int8", "tiny-npu")
)

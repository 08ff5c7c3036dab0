"""DRAM traffic by tensor."""

from collections import defaultdict

from msgspec import Struct

from accel.core.config import INSTRUCTION_BYTES
from accel.core.instruction_access import dram_rows
from accel.core.isa import Store, Transfer, Unit
from accel.views.analyzed_run import AnalyzedRun

INSTRUCTIONS = "instructions"


class TensorTraffic(Struct, kw_only=True):
    """Traffic of a tensor, region or address range.

    Attributes:
        role: for example ``input`` or ``region``, or empty.
        size: bytes, if known.
        read, written: bytes that instructions request.
        bus: bytes of whole beats.
    """

    name: str
    role: str
    size: int | None
    read: int = 0
    written: int = 0
    bus: int = 0
    bursts: int = 0

    @property
    def moved(self) -> int:
        return self.read + self.written


def dram_traffic(run: AnalyzedRun) -> list[TensorTraffic]:
    """Count the bytes of started instructions by tensor, then by address."""
    config = run.image.config
    known = run.dram_map.named_parts() + run.dram_map.unnamed_parts()
    found = {name: TensorTraffic(name=name, role=role, size=size) for name, role, size in known}
    names: dict[int, str] = {}
    started = {one.instruction for one in run.activity.slices}
    for index, one in enumerate(run.instructions):
        if index not in started:
            continue
        tile = run.dram_map.tile(one) if isinstance(one, Transfer) else None
        rows = None if tile is None else dram_rows(one, config)
        if tile is None or rows is None:
            continue
        names[index] = name = tile.area or tile.name
        entry = found.setdefault(name, TensorTraffic(name=name, role="", size=None))
        if isinstance(one, Store):
            entry.written += rows.rows * rows.row_bytes
        else:
            entry.read += rows.rows * rows.row_bytes
    size, read = (n * INSTRUCTION_BYTES for n in (len(run.instructions), run.activity.dispatched))
    found[INSTRUCTIONS] = TensorTraffic(name=INSTRUCTIONS, role="", size=size, read=read)
    beats: dict[str, int] = defaultdict(int)
    for burst in run.activity.bursts:
        name = INSTRUCTIONS if burst.unit is Unit.FETCH else names.get(burst.instruction, "")
        if name:
            found[name].bursts += 1
            beats[name] += burst.beats_before(run.activity.cycles)
    for name, count in beats.items():
        found[name].bus = count * config.bus_bytes
    return list(found.values())

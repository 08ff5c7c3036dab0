"""What moves between DRAM and the scratchpads, by tensor."""

from collections import defaultdict
from dataclasses import dataclass

from accel.core.access import dram_rows
from accel.core.config import INSTRUCTION_BYTES
from accel.core.isa import Store, Transfer, Unit
from accel.views.scene import Scene

INSTRUCTIONS = "instructions"


@dataclass(kw_only=True)
class Traffic:
    """One tensor, or something else in DRAM that has a name.

    Attributes:
        size: its bytes in DRAM; None if it is not known.
        read, written: bytes that instructions ask for.
        bus: bytes of the beats in which they move, of which some may be of no use.
        bursts: how many.
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
        """Bytes read and written."""
        return self.read + self.written


def traffic(scene: Scene) -> list[Traffic]:
    """What the instructions that started move, tensors first, each in order of their place in DRAM."""
    config = scene.image.config
    known = scene.places.contents() + scene.places.areas()
    found = {name: Traffic(name=name, role=role, size=size) for name, role, size in known}
    names: dict[int, str] = {}
    started = {one.instruction for one in scene.seen.slices}
    for index, one in enumerate(scene.instructions):
        if index not in started:
            continue
        tile = scene.places.tile(one) if isinstance(one, Transfer) else None
        rows = None if tile is None else dram_rows(one, config)
        if tile is None or rows is None:
            continue
        names[index] = name = tile.area or tile.name
        entry = found.setdefault(name, Traffic(name=name, role="", size=None))
        if isinstance(one, Store):
            entry.written += rows.rows * rows.row_bytes
        else:
            entry.read += rows.rows * rows.row_bytes
    size, code = (n * INSTRUCTION_BYTES for n in (len(scene.instructions), scene.seen.handed))
    found[INSTRUCTIONS] = Traffic(name=INSTRUCTIONS, role="", size=size, read=code)
    beats: dict[str, int] = defaultdict(int)
    for burst in scene.seen.bursts:
        name = INSTRUCTIONS if burst.unit is Unit.FETCH else names.get(burst.instruction, "")
        if name:
            found[name].bursts += 1
            beats[name] += burst.beats(scene.seen.cycles)
    for name, count in beats.items():
        found[name].bus = count * config.bus_bytes
    return list(found.values())

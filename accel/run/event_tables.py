"""Tables of a run's instructions and events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel.assembly.symbolic_names import PlaceNames, token_label
from accel.base.errors import AccelError
from accel.base.optional_extras import not_installed
from accel.core.events import Event, EventKind
from accel.core.isa import Loops, Unit, format_instruction
from accel.core.token_rules import Counter
from accel.image.image import Image
from accel.run.critical_path import tensor_lookup

_BURSTS = (EventKind.BURST_GRANT, EventKind.BURST_LAST)
_TOKENS = (EventKind.TOKEN_PUSH, EventKind.TOKEN_POP)


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table by columns.

    Attributes:
        columns: values by column's name, all of one length. None where a value does not apply.
    """

    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Sequence[Any]:
        """Return a column, or raise a KeyError."""
        return self.columns[name]

    def __repr__(self) -> str:
        return f"ResultTable({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield rows, with values by column."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas data frame. Integers have the dtype ``Int64``, which may lack values.

        Raises:
            AccelError: pandas is not installed.
        """
        pandas = import_pandas()
        frame = pandas.DataFrame({name: list(column) for name, column in self.columns.items()})
        numbers = {
            name: "Int64"
            for name, column in self.columns.items()
            if any(isinstance(one, int) for one in column)
        }
        return frame.astype(numbers)

    def to_arrow(self) -> Any:
        """Return an Arrow table.

        Raises:
            AccelError: pyarrow is not installed.
        """
        return import_arrow().table({name: list(column) for name, column in self.columns.items()})


def import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise AccelError(not_installed("data frames need pandas", "tables")) from None
    return pandas


def import_arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise AccelError(not_installed("Arrow tables need pyarrow", "tables")) from None
    return pyarrow


def instructions_table(image: Image, events: Sequence[Event] | None) -> ResultTable:
    """Columns of cycles and bursts need events."""
    names, tensor, provenance = PlaceNames(image), tensor_lookup(image), image.provenance
    text = _by_object(lambda one: format_instruction(one, names).partition("#")[0].strip())
    count = len(image.instructions)
    columns: dict[str, list[Any]] = {
        "index": list(range(count)),
        "unit": [one.unit.label for one in image.instructions],
        "instruction": [one.mnemonic for one in image.instructions],
        "tensor": [tensor(index) for index in range(count)],
        "stage": [None if provenance is None else provenance[n].stage or None for n in range(count)],
        "uops": [one.uop_count if isinstance(one, Loops) else None for one in image.instructions],
        "text": [text(one) for one in image.instructions],
    }
    if events is None:
        return ResultTable(columns)
    cycles: dict[EventKind, list[int | None]] = {
        kind: [None] * count for kind in (EventKind.QUEUE_PUSH, EventKind.START, EventKind.RETIRE)
    }
    bursts, beats = [0] * count, [0] * count
    for cycle, unit, kind, index, value in events:
        if kind in cycles:
            cycles[kind][index] = cycle
        elif kind is EventKind.BURST_GRANT and unit is not Unit.FETCH:
            bursts[index] += 1
            beats[index] += value
    return ResultTable(
        {
            **columns,
            "handed_out": cycles[EventKind.QUEUE_PUSH],
            "start": cycles[EventKind.START],
            "retire": cycles[EventKind.RETIRE],
            "bursts": bursts,
            "beats": beats,
        }
    )


def events_table(image: Image, events: Sequence[Event]) -> ResultTable:
    """Return a row for each event."""
    tensor, instructions = tensor_lookup(image), image.instructions
    fetched = [one.unit is Unit.FETCH and one.kind in _BURSTS for one in events]
    return ResultTable(
        {
            "cycle": [one.cycle for one in events],
            "unit": [Unit(one.unit).label for one in events],
            "event": [EventKind(one.kind).name.lower().replace("_", " ") for one in events],
            "index": [one.instruction for one in events],
            "instruction": [
                None if own else instructions[one.instruction].mnemonic
                for one, own in zip(events, fetched, strict=True)
            ],
            "tensor": [
                None if own else tensor(one.instruction) for one, own in zip(events, fetched, strict=True)
            ],
            "queue": [Unit(one.value).label if one.kind is EventKind.QUEUE_PUSH else None for one in events],
            "token": [token_label(Counter(one.value)) if one.kind in _TOKENS else None for one in events],
            "beats": [one.value if one.kind in _BURSTS else None for one in events],
        }
    )


def _by_object(make: Callable[[Any], str]) -> Callable[[Any], str]:
    known: dict[int, str] = {}

    def found(one: Any) -> str:
        if id(one) not in known:
            known[id(one)] = make(one)
        return known[id(one)]

    return found

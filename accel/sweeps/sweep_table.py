"""The table of a sweep."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.atomic_files import write_atomically
from accel.base.errors import SweepError, nearest
from accel.base.optional_extras import not_installed
from accel.sweeps.sweep_plots import Plot, draw, make_plot, svg

_REFUSED = ("refused",)
"""``error`` of impossible programs, which are not at fault."""
_SHORT_FIGURES = ("cycles", "utilization", "traffic_bytes", "error")


@dataclass(frozen=True, repr=False)
class Table:
    """Rows with the same columns. Missing values are None."""

    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, rows: Iterable[dict[str, Any]]) -> "Table":
        every = list(rows)
        columns: dict[str, None] = {}
        for row in every:
            columns |= dict.fromkeys(row)
        return cls([{name: row.get(name) for name in columns} for row in every])

    def __add__(self, other: "Table") -> "Table":
        return Table.of([*self.rows, *other.rows])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows, {len(self.columns)} columns>"

    @property
    def columns(self) -> list[str]:
        """Names of columns, in order."""
        return list(self.rows[0]) if self.rows else []

    def column(self, name: str) -> list[Any]:
        self.check(name)
        return [row[name] for row in self.rows]

    def check(self, *names: str) -> None:
        """Raise a SweepError for an unknown column."""
        for name in names:
            if name not in self.columns:
                raise SweepError(f"{name!r} is not a column; {nearest(name, self.columns)}")

    def where(self, **values: Any) -> "Table":
        """Return rows with values, for example ``table.where(vthreads=2)``."""
        self.check(*values)
        return Table([row for row in self.rows if all(row[n] == v for n, v in values.items())])

    @property
    def faults(self) -> list[dict[str, Any]]:
        """Rows of faulty programs."""
        return [row for row in self.rows if row["error"] is not None and row["error"] not in _REFUSED]

    @property
    def refused(self) -> list[dict[str, Any]]:
        """Rows of impossible programs, for example with too large tiles."""
        return [row for row in self.rows if row["error"] in _REFUSED]

    def varying(self, settings: Sequence[str]) -> list[str]:
        """Return ``settings`` with several values."""
        return [name for name in settings if name in self.columns and len(set(self.column(name))) > 1]

    def short(self, settings: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of varying settings and main figures."""
        names = self.varying(settings) + [name for name in _SHORT_FIGURES if name in self.columns]
        if not any(row.get("error") for row in self.rows):
            names = [name for name in names if name != "error"]
        return names, [[as_text(name, row[name]) for name in names] for row in self.rows]

    def save_csv(self, path: str | Path) -> None:
        """Write a CSV file. None is an empty field."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_atomically(Path(path), text.getvalue().encode())

    def save_parquet(self, path: str | Path) -> None:
        """Write a Parquet file."""
        arrow, parquet = import_parquet()
        sink = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(self.rows), sink)
        write_atomically(Path(path), sink.getvalue())

    def draw(self, plot: Plot) -> Any:
        """Return a plot as a matplotlib figure."""
        self.check(*plot.columns)
        return draw(plot, self.rows)

    def svg(self, plot: Plot) -> bytes:
        """Return a self-contained SVG file, see :meth:`draw`."""
        self.check(*plot.columns)
        return svg(plot, self.rows)

    def plot(self, x: str, y: str | Sequence[str], by: str | Sequence[str] = (), **options: Any) -> Any:
        """Return a matplotlib figure, for example ``table.plot("read_latency", "cycles", by="vthreads")``.

        Args:
            by: a line for each combination of columns.
        """
        return self.draw(make_plot({"x": x, "y": y, "by": by, **options}))


def import_parquet() -> tuple[Any, Any]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise SweepError(not_installed("Parquet needs pyarrow", "parquet")) from None
    return arrow, parquet


def as_text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("utilization") or name.endswith("fraction"):
        return f"{value:.1%}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)

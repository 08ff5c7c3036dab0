"""The tidy table that a sweep gives: a row for each point, a column for each setting and figure."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.errors import SweepError, nearest
from accel.base.extras import not_installed
from accel.base.files import write_atomically
from accel.sweeps.plots import Plot, draw, make_plot, svg

FAULT_FREE = ("refused",)
"""Errors that are not the program's fault."""
_SHOWN = ("cycles", "utilization", "traffic_bytes", "error")
"""Figures that the short form shows."""


@dataclass(frozen=True, repr=False)
class Table:
    """Rows with the same columns; what does not apply is None.

    Attributes:
        rows: values by column.
    """

    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, rows: Iterable[dict[str, Any]]) -> "Table":
        """A table with the columns of all rows, in the order of their first appearance."""
        every = list(rows)
        columns: dict[str, None] = {}
        for row in every:
            columns |= dict.fromkeys(row)
        return cls([{name: row.get(name) for name in columns} for row in every])

    def __add__(self, other: "Table") -> "Table":
        """The rows of both, with the columns of either."""
        return Table.of([*self.rows, *other.rows])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows, {len(self.columns)} columns>"

    @property
    def columns(self) -> list[str]:
        """Their names, in order."""
        return list(self.rows[0]) if self.rows else []

    def column(self, name: str) -> list[Any]:
        """The values of a column.

        Raises:
            SweepError: there is none of this name.
        """
        self.check(name)
        return [row[name] for row in self.rows]

    def check(self, *names: str) -> None:
        """Refuse columns that do not exist.

        Raises:
            SweepError: naming the nearest.
        """
        for name in names:
            if name not in self.columns:
                raise SweepError(f"{name!r} is no column; {nearest(name, self.columns)}")

    def where(self, **values: Any) -> "Table":
        """The rows with these values.

        Raises:
            SweepError: there is no such column.
        """
        self.check(*values)
        return Table([row for row in self.rows if all(row[n] == v for n, v in values.items())])

    @property
    def faults(self) -> list[dict[str, Any]]:
        """Rows of programs that are at fault."""
        return [row for row in self.rows if row["error"] is not None and row["error"] not in FAULT_FREE]

    @property
    def refused(self) -> list[dict[str, Any]]:
        """Rows of programs that cannot be, since a machine or a workload is too small for what is asked."""
        return [row for row in self.rows if row["error"] in FAULT_FREE]

    def varying(self, settings: Sequence[str]) -> list[str]:
        """Those of the columns that have more than one value."""
        return [name for name in settings if name in self.columns and len(set(self.column(name))) > 1]

    def short(self, settings: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of what varies and the main figures, as text."""
        names = self.varying(settings) + [name for name in _SHOWN if name in self.columns]
        if not any(row.get("error") for row in self.rows):
            names = [name for name in names if name != "error"]
        return names, [[as_text(name, row[name]) for name in names] for row in self.rows]

    # --- files -----------------------------------------------------------------------------------

    def save_csv(self, path: str | Path) -> None:
        """Write it as CSV; None is an empty field.

        Raises:
            ProgramError: it cannot be written.
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_atomically(Path(path), text.getvalue().encode())

    def save_parquet(self, path: str | Path) -> None:
        """Write it as Parquet.

        Raises:
            SweepError: pyarrow is not installed.
            ProgramError: it cannot be written.
        """
        arrow, parquet = import_parquet()
        sink = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(self.rows), sink)
        write_atomically(Path(path), sink.getvalue())

    # --- plots -----------------------------------------------------------------------------------

    def draw(self, plot: Plot) -> Any:
        """A plot as a matplotlib figure.

        Raises:
            SweepError: there is no such column, nothing to draw, or no matplotlib.
        """
        self.check(*plot.columns)
        return draw(plot, self.rows)

    def svg(self, plot: Plot) -> bytes:
        """A plot as an SVG file that holds all it needs.

        Raises:
            SweepError: as for :meth:`draw`.
        """
        self.check(*plot.columns)
        return svg(plot, self.rows)

    def plot(self, x: str, y: str | Sequence[str], by: str | Sequence[str] = (), **options: Any) -> Any:
        """A matplotlib figure, described in place.

        Args:
            x, y: columns.
            by: columns whose values make a line each.
            options: further attributes of :class:`~accel.sweeps.plots.Plot`.

        Raises:
            SweepError: there is no such option, and as for :meth:`draw`.
        """
        return self.draw(make_plot({"x": x, "y": y, "by": by, **options}))


def import_parquet() -> tuple[Any, Any]:
    """pyarrow and its Parquet module.

    Raises:
        SweepError: it is not installed.
    """
    try:
        import pyarrow as arrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise SweepError(not_installed("Parquet needs pyarrow", "parquet")) from None
    return arrow, parquet


def as_text(name: str, value: Any) -> str:
    """A value for people."""
    if value is None:
        return ""
    if name.endswith("utilization") or name.endswith("fraction"):
        return f"{value:.1%}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)

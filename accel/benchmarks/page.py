"""A network's figures as a Markdown page."""

from collections.abc import Callable, Sequence
from typing import Any

from accel.benchmarks.layers import Row, total
from accel.benchmarks.table import COLUMNS, NAME, REPEATS, Column, lines
from accel.core.config import Config

_SCALED = "Layers end with a bias, a scale per channel, a zero point and saturation. "
_FULL = 0.9
"""Blocks are full of which at least this share is real products."""


def page(found: dict[str, Any], config: Config, asked: str) -> str:
    """The page of what :func:`~accel.benchmarks.layers.report` gives.

    Args:
        found: the report, no layer of which is at fault.
        config: the machine.
        asked: arguments of ``accel bench`` that give the figures.
    """
    rows = found["layers"]
    products = all(row["operator"] == "gemm" for row in rows)
    parts = [
        f"# {found['network']} on `{config.label}`",
        f"Written by `accel bench {asked} -o FILE`; [networks](../networks.md) explains the columns. The "
        f"machine does {config.batch} x {config.block_in} x {config.block_out} multiply-accumulates per "
        f"cycle, has a {config.bus_bits}-bit bus, and its memory answers after {config.read_latency} "
        f"cycles. {_SCALED if found['epilogue'] == 'scale' else ''}All results equal numpy's.",
        _markdown(COLUMNS if products else (NAME, _SHAPE, *COLUMNS[1:]), rows),
        "## What bounds the layers",
        " ".join(_sentences(rows)),
        "## The floor",
        " ".join(_floor_sentences(rows)),
        _markdown(_floor_columns(config), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    cells = [
        [column.heading for column in columns],
        ["---" if column.left else "---:" for column in columns],
        *lines(rows, columns),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def shape_text(row: Row) -> str:
    """What a layer of a network computes, in short."""
    sizes = row["parameters"]
    if row["operator"] == "dense":
        return f"{sizes['IC']} to {sizes['OC']}"
    if "C" in sizes:
        window = f", {sizes['kernel']} x {sizes['kernel']} / {sizes['stride']}" if "kernel" in sizes else ""
        return f"{sizes['H']} x {sizes['W']} x {sizes['C']}{window}"
    kernel, stride, groups = sizes["kernel"], sizes["stride"], sizes.get("groups", 1)
    text = f"{sizes['H']} x {sizes['W']} x {sizes['IC']} to {sizes['OC']}, {kernel} x {kernel}"
    text += f" / {stride}" if stride > 1 else ""
    return text + (" depthwise" if groups == sizes["IC"] > 1 else "")


_SHAPE = Column(heading="shape", cell=shape_text, whole=lambda _: "", left=True)


# --- what bounds the layers ----------------------------------------------------------------------------


_REASONS = {
    "compute": "The compute unit bounds {layers}: it is at work {busy} of the time, so only fewer "
    "micro-ops would make {them} faster.",
    "loads": "Loads bound {layers}: beats arrive in {busy} of the cycles, so only fewer bytes or a "
    "wider bus would make {them} faster.",
    "stores": "Stores bound {layers}: the bus takes data in {busy} of the cycles.",
    "latency": "In {layers}, no unit is at work all the time (the busiest one {busy}): filling the first "
    "buffers and draining the last ones takes a visible share, or units wait for one another.",
}


def _sentences(rows: Sequence[Row]) -> list[str]:
    """What bounds which layers."""
    found = []
    for bound, reason in _REASONS.items():
        here = [row for row in rows if row["bound_by"] == bound]
        if here:
            busy = _range([max(_busy(row)) for row in here], here)
            layers = _listed([row["name"] for row in here]) if len(here) < len(rows) else "every layer"
            found.append(reason.format(layers=layers, busy=busy, them="them" if len(here) > 1 else "it"))
    multiplying = [row for row in rows if row["gemm_uops"]]
    if any(row["uops"] > row["gemm_uops"] for row in multiplying):
        rest = _range([1 - row["gemm_uops"] / row["uops"] for row in multiplying], multiplying)
        found.append(f"Of the micro-ops, {rest} multiply nothing: they are passes over the output.")
    sparse = [row for row in multiplying if row["ideal_cycles"] < _FULL * row["gemm_uops"]]
    if sparse:
        real = _range([row["ideal_cycles"] / row["gemm_uops"] for row in sparse], sparse)
        layers = _listed([row["name"] for row in sparse])
        found.append(f"{layers} do not fill the blocks of the GEMM core: {real} of their products are real.")
    found.append(
        f"Weighted by occurrences, the compute unit is at work {_share(rows, 'compute')} of the cycles, "
        f"loads {_share(rows, 'load')} and stores {_share(rows, 'store')}."
    )
    return found


def _range(shares: Sequence[float], rows: Sequence[Row]) -> str:
    """The lowest and the highest share, and whose they are."""
    if len(rows) == 1:
        return f"{shares[0]:.1%}"
    ends = sorted(zip(shares, (row["name"] for row in rows), strict=True))
    (low, first), (high, last) = ends[0], ends[-1]
    return f"{low:.1%} ({first}) to {high:.1%} ({last})"


def _busy(row: Row) -> list[float]:
    """Shares of the cycles in which load, compute and store unit are at work."""
    return [row["stalls"][unit]["busy"] / row["cycles"] for unit in ("load", "compute", "store")]


def _share(rows: Sequence[Row], unit: str) -> str:
    busy = sum(row["repeats"] * row["stalls"][unit]["busy"] for row in rows)
    return f"{busy / (total(rows, 'cycles') or 1):.1%}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- the floor -------------------------------------------------------------------------------------------


_PASSES = (
    "The compute unit's cycles are micro-ops: products of whole blocks, and *passes* over every block of "
    "the output: reset and bias together, shift, and two bounds; accumulators that are used for the "
    "first time are also reset."
)
_NO_PASSES = (
    "The compute unit's cycles are micro-ops: products of whole blocks, the first of which overwrites what "
    "an accumulator held. There are no *passes*: the store unit finishes outputs on their way to memory."
)


def _floor_sentences(rows: Sequence[Row]) -> list[str]:
    uops, cycles = total(rows, "uops") or 0, total(rows, "cycles") or 1
    return [
        "The *MAC limit* counts every product, including those with the zeros around an input; programs "
        "leave these out, and what is left are the *real products*.",
        _PASSES if any(row["uops"] > row["gemm_uops"] for row in rows) else _NO_PASSES,
        f"They make up {uops / cycles:.1%} of all cycles. What remains above them is loads before the first "
        f"micro-op and stores after the last and, in layers that the compute unit does not bound, waiting "
        f"for data.",
    ]


def _floor_columns(config: Config) -> tuple[Column, ...]:
    figures: dict[str, Callable[[Row], float]] = {
        "MAC limit": lambda row: row["macs"] / config.macs_per_cycle,
        "real products": lambda row: row["ideal_cycles"],
        "GEMM micro-ops": lambda row: row["gemm_uops"],
        "compute unit": lambda row: row["uops"],
        "cycles": lambda row: row["cycles"],
        "above": lambda row: row["cycles"] - row["uops"],
    }
    products, real, gemm, *rest = (_summed(heading, figure) for heading, figure in figures.items())

    def passes(row: Row) -> str:
        return f"{(row['uops'] - row['gemm_uops']) / _output_blocks(row, config):.2f}"

    each = Column(heading="passes", cell=passes, whole=lambda _: "")
    return (NAME, REPEATS, products, real, gemm, each, *rest)


def _summed(heading: str, figure: Callable[[Row], float]) -> Column:
    return Column(
        heading=heading,
        cell=lambda row: f"{figure(row):,.0f}",
        whole=lambda rows: f"{sum(row['repeats'] * figure(row) for row in rows):,.0f}",
    )


def _output_blocks(row: Row, config: Config) -> int:
    """Accumulators that a layer's output fills."""
    return int(row["bytes_by_kind"]["out"]) // config.out_element_bytes

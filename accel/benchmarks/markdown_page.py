"""The figures of a network as a Markdown page."""

from collections.abc import Callable, Sequence
from typing import Any

from accel.benchmarks.layer_table import COLUMNS, NAME, REPEATS, Column, table_lines
from accel.benchmarks.measure_layers import Row, total
from accel.core.config import Config

_SCALED = "The epilogue has a bias, a scale per channel, a zero point and saturation. "
_FULL_SHARE = 0.9
"""Share of real products from which blocks count as full."""


def markdown_page(found: dict[str, Any], config: Config, arguments: str) -> str:
    """Return the page of a :func:`~accel.benchmarks.measure_layers.report` without faults.

    ``arguments`` are those of ``accel bench``.
    """
    rows = found["layers"]
    products = all(row["operator"] == "gemm" for row in rows)
    parts = [
        f"# {found['network']} on `{config.label}`",
        f"Written by `accel bench {arguments} -o FILE`; [networks](../networks.md) explains the columns. The "
        f"machine does {config.batch} x {config.block_in} x {config.block_out} multiply-accumulates per "
        f"cycle, has a {config.bus_bits}-bit bus, and its memory answers after {config.read_latency} "
        f"cycles. {_SCALED if found['epilogue'] == 'scale' else ''}All results equal numpy's.",
        _markdown(COLUMNS if products else (NAME, _SHAPE, *COLUMNS[1:]), rows),
        "## Bounds of the layers",
        " ".join(_sentences(rows)),
        "## Lower bounds",
        " ".join(_bound_sentences(rows)),
        _markdown(_bound_columns(config), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    cells = [
        [column.heading for column in columns],
        ["---" if column.left else "---:" for column in columns],
        *table_lines(rows, columns),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def shape_text(row: Row) -> str:
    """For example ``56 x 56 x 64 to 128, 3 x 3 / 2``."""
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


_REASONS = {
    "compute": "The compute unit bounds {layers}: it is busy in {busy} of the cycles, so only fewer "
    "micro-ops would make {them} faster.",
    "loads": "Loads bound {layers}: beats arrive in {busy} of the cycles, so only fewer bytes or a "
    "wider bus would make {them} faster.",
    "stores": "Stores bound {layers}: the bus accepts data in {busy} of the cycles.",
    "latency": "No unit is busy all the time in {layers}: the busiest one is busy in {busy} of the cycles. "
    "Filling the first buffers and draining the last ones takes a share, or units wait for each other.",
}


def _sentences(rows: Sequence[Row]) -> list[str]:
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
        found.append(f"Passes over the output, which multiply nothing, are {rest} of the micro-ops.")
    sparse = [row for row in multiplying if row["ideal_cycles"] < _FULL_SHARE * row["gemm_uops"]]
    if sparse:
        real = _range([row["ideal_cycles"] / row["gemm_uops"] for row in sparse], sparse)
        layers = _listed([row["name"] for row in sparse])
        found.append(
            f"{layers} do not fill the blocks of the GEMM core: only {real} of their products are real."
        )
    found.append(
        f"Over the whole network, the compute unit is busy in {_share(rows, 'compute')} of the cycles, loads "
        f"in {_share(rows, 'load')} and stores in {_share(rows, 'store')}."
    )
    return found


def _range(shares: Sequence[float], rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return f"{shares[0]:.1%}"
    ends = sorted(zip(shares, (row["name"] for row in rows), strict=True))
    (low, first), (high, last) = ends[0], ends[-1]
    return f"{low:.1%} ({first}) to {high:.1%} ({last})"


def _busy(row: Row) -> list[float]:
    return [row["stalls"][unit]["busy"] / row["cycles"] for unit in ("load", "compute", "store")]


def _share(rows: Sequence[Row], unit: str) -> str:
    busy = sum(row["repeats"] * row["stalls"][unit]["busy"] for row in rows)
    return f"{busy / (total(rows, 'cycles') or 1):.1%}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_PASSES = (
    "The compute unit's cycles are micro-ops: products of whole blocks, and *passes* over every block of "
    "the output. The passes are reset and bias together, shift, and two bounds. Accumulators are also reset "
    "when they are used for the first time."
)
_NO_PASSES = (
    "The compute unit's cycles are micro-ops: products of whole blocks, the first of which overwrites the "
    "accumulator. There are no *passes*, since the store unit requantizes outputs on their way to memory."
)


def _bound_sentences(rows: Sequence[Row]) -> list[str]:
    uops, cycles = total(rows, "uops") or 0, total(rows, "cycles") or 1
    return [
        "The *MAC limit* counts every product, including those on padding. Programs skip products on "
        "padding; the rest are the *real products*.",
        _PASSES if any(row["uops"] > row["gemm_uops"] for row in rows) else _NO_PASSES,
        f"Micro-ops make up {uops / cycles:.1%} of all cycles. The remaining cycles, in the column *above*, "
        "are loads before the first micro-op, stores after the last one and, in layers that the compute unit "
        "does not bound, waits for data.",
    ]


def _bound_columns(config: Config) -> tuple[Column, ...]:
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
    return int(row["bytes_by_kind"]["out"]) // config.out_element_bytes

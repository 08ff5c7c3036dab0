"""Generate ``docs/reference/configuration.md``."""

from collections.abc import Callable

from accel.core.config import NAMED, SPECS, Config, Spec
from accel.core.markdown_table import table

_INTRODUCTION = """\
This page is for everyone who chooses or changes a machine. It lists every field of a configuration, and the
values of the named machines. [Change the machine](../how-to/change-the-machine.md) shows how to set fields.

A program is compiled for a *geometry* and runs only on machines with the same geometry. *Timing* fields may
change from run to run. They change cycles and not results, unless the program no longer fits: a smaller DRAM
window or narrower token counters can end it with an error. For example, `--set read_latency=200` is allowed
for a compiled program and `--set inp_bytes=64KiB` is not.

A value must be in the range of its field, and a power of two where the table says so. Sizes may be written as
`64KiB`. *Affects* names the scratchpads, units, instructions or rules that depend on a field.
[The instruction set](isa.md) and [the timing contract](timing.md) describe them."""

_ALU_OPS = """\
One geometry field is no number. `alu_ops` names the operations of ALU, by default those of VTA,
`min,max,add,shr,mul`. For example, `alu_ops=+absdiff` adds a declared operation to them, and
`alu_ops=add,max,min` is a machine without shifts and products, whose lanes need no multipliers.
[Add an operation](../how-to/add-an-operation.md) shows how to declare one. Files hold the names as a list,
and after each declared one `@` with a hash of its declaration."""

_FEATURES = """\
Each of these fields adds something to a machine with `post=1`, and is 0 on machines that lack it. Files and
registers name only those that are not 0. For example, `--config vta-int8 --set tab_bytes=2KiB` is a machine
with eight tables."""

_RULES = """\
Fields must also fit one another. A violation is reported when the configuration is created.

- Each scratchpad has at least two elements. For example, `acc_bytes=64` is refused on `vta`, where an
  acc element has 64 bytes.
- The fields of an instruction fit into 128 bits, those of a micro-op into 32. For example,
  `inp_bytes=64MiB` is refused on `vta`, because GEMM would need 170 bits.
- `mem_base` is a multiple of 4096, and `mem_base + mem_size` is at most 2^40.
- `fetch_chunk` is at most `fetch_buffer`.
- `par` has at most 16384 elements.
- `tab_bytes` is 0, or at least 512: two tables.
- `post_lanes` is at most the bytes of a beat and the values of an out element.
- `inp_banks` above 1 needs `block_in` equal to `block_out`, and an inp of at least `inp_banks` elements."""

_MACHINES = """\
Fields that have the same value on all named machines are left out. `accel configs NAME` prints all fields of
one machine. The last rows follow from the fields. A depth is a capacity divided by the bytes of an element.
For example, an inp element of `vta` has 1x16 bytes, so 32 KiB hold 2048 elements.

| machine | purpose |
| --- | --- |
| `vta` | the stock configuration of VTA |
| `gemm8x8` | the classic 8x8x8 GEMM core, with a 128-bit bus |
| `tiny` | small, for tests and random programs |
| `ecp5` | fits an ECP5-85F FPGA |
| `vta-int8`, `gemm8x8-int8`, `tiny-int8`, `ecp5-int8` | the same with `post=1` |
| `vta-npu`, `gemm8x8-npu`, `tiny-npu`, `ecp5-npu` | those with all features of the third generation |"""

_DERIVED: dict[str, tuple[str, Callable[[Config], int]]] = {
    "MACs per cycle": ("multiply-accumulates", lambda c: c.macs_per_cycle),
    "uop depth": ("micro-ops", lambda c: c.uop_depth),
    "inp depth": ("elements", lambda c: c.inp_depth),
    "wgt depth": ("elements", lambda c: c.wgt_depth),
    "acc depth": ("elements", lambda c: c.acc_depth),
}


def config_manual() -> str:
    """Return the page as Markdown."""
    return (
        "\n\n".join(
            [
                "# Configuration",
                _INTRODUCTION,
                "## Geometry",
                _field_table(
                    [name for name, spec in SPECS.items() if spec.kind == "geometry" and not spec.post]
                ),
                _ALU_OPS,
                "## Timing",
                _field_table(
                    [name for name, spec in SPECS.items() if spec.kind == "timing" and not spec.post]
                ),
                "## Second generation",
                "Only machines with `post=1` have these fields, apart from `post` itself.",
                _field_table([name for name, spec in SPECS.items() if spec.post and not spec.feature]),
                "## Third generation",
                _FEATURES,
                _field_table([name for name, spec in SPECS.items() if spec.feature]),
                "## Rules between fields",
                _RULES,
                "## Named machines",
                _MACHINES,
                _machine_table(),
            ]
        )
        + "\n"
    )


def _field_table(names: list[str]) -> str:
    rows = []
    for name in names:
        spec = SPECS[name]
        default = _amount(getattr(Config, name), spec)
        rows.append((f"`{name}`", spec.doc, spec.unit, _range(spec), default, spec.kind, spec.affects))
    return table(("field", "meaning", "unit", "range", "default", "kind", "affects"), rows)


def _range(spec: Spec) -> str:
    low, high = _amount(spec.low, spec), _amount(spec.high, spec)
    return f"{low}..{high}" + (", power of two" if spec.power_of_two else "")


def _amount(value: int, spec: Spec) -> str:
    if spec.unit == "bytes" and value:
        for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
            if value % (1 << shift) == 0:
                return f"{value >> shift} {unit}"
    return f"{value}"


def _machine_table() -> str:
    rows = []
    for name, spec in SPECS.items():
        values = [_value(config, name, spec) for config in NAMED.values()]
        if len({*values} - {"-"}) > 1:
            rows.append((f"`{name}`", spec.unit, *values))
    for name, (unit, derive) in _DERIVED.items():
        rows.append((name, unit, *(f"{derive(config)}" for config in NAMED.values())))
    return table(("field", "unit", *(f"`{name}`" for name in NAMED)), rows)


def _value(config: Config, name: str, spec: Spec) -> str:
    has_field = name in config.fields or name == "post"
    return _amount(getattr(config, name), spec) if has_field else "-"

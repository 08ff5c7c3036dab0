import click

from accel.area import predict_area
from accel.cli.shared_options import parse_settings
from accel.cli.stdout import write
from accel.cli.terminal_output import print_json, show, text_table
from accel.core.config import ALU_OPS, NAMED, SPECS, Config, load_config
from accel.core.config_manual import config_manual
from accel.core.isa import check_encodable
from accel.run.result import SCHEMA_VERSION


def configs(
    name: str | None, settings: tuple[str, ...], as_markdown: bool, area: bool, as_json: bool
) -> None:
    if as_markdown:
        if name or settings or area or as_json:
            raise click.UsageError("--markdown describes all machines; give nothing else")
        write(config_manual())
        return
    chosen = [load_config(name)] if name else list(NAMED.values())
    chosen = [config.variant(parse_settings(settings)) for config in chosen]
    for config in chosen:
        check_encodable(config)
    if as_json:
        areas = {"areas": [predict_area(config).to_dict() for config in chosen]} if area else {}
        print_json(
            {"schema_version": SCHEMA_VERSION, "configs": [config.to_dict() for config in chosen], **areas}
        )
    elif area:
        _print_areas(chosen)
    elif name:
        _print_fields(chosen[0])
    else:
        _print_overview(chosen)


def _print_overview(chosen: list[Config]) -> None:
    table = text_table()
    for heading in ("name", "batch", "in", "out", "MAC/cycle", "uop", "inp", "wgt", "acc", "bus"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    for c in chosen:
        sizes = [f"{n >> 10} KiB" if n >= 1 << 10 else f"{n} B" for n in _capacities(c)]
        table.add_row(
            c.label,
            str(c.batch),
            str(c.block_in),
            str(c.block_out),
            str(c.macs_per_cycle),
            *sizes,
            f"{c.bus_bits}",
        )
    show(table)


def _print_areas(chosen: list[Config]) -> None:
    found = {config.label: predict_area(config) for config in chosen}
    table = text_table()
    for heading in ("name", "LUT slots", "flip-flops", "block RAM", "multipliers"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    for label, one in found.items():
        counts = (one.lut_slots, one.flip_flops, one.block_ram, one.multipliers)
        table.add_row(label, *(f"{count:,}" for count in counts))
    show(table)
    one = next(iter(found.values()))
    lut, flip_flop = one.lut_error, one.flip_flop_error
    show(
        f"LUT slots and flip-flops come from a model of {one.machines} synthesized machines. On machines "
        f"held out from the fit its error is {lut.median:.1%} and {flip_flop.median:.1%} in the median, "
        f"at most {lut.largest:.1%} and {flip_flop.largest:.1%}. Block RAMs and multipliers are exact."
    )
    outside = [label for label, one in found.items() if one.outside]
    if outside:
        show(f"larger than the fitted machines, so less exact: {', '.join(outside)}")


def _capacities(c: Config) -> tuple[int, int, int, int]:
    return c.uop_bytes, c.inp_bytes, c.wgt_bytes, c.acc_bytes


def _print_fields(config: Config) -> None:
    table = text_table(str(config))
    for heading in ("field", "value", "unit", "kind", "meaning"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name in config.fields:
        spec = SPECS[name]
        table.add_row(name, str(getattr(config, name)), spec.unit, spec.kind, spec.doc)
    table.add_row(ALU_OPS, ",".join(config.alu_ops), "names", "geometry", "the operations of ALU")
    show(table)

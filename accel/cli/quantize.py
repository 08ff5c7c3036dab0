import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError
from accel.base.records import as_dict
from accel.cli.npy_files import read_archive
from accel.cli.shared_options import parse_shapes
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show, text_table
from accel.formats.calibration_data import read_folder
from accel.formats.onnx_file import read_file
from accel.formats.onnx_import import with_shapes
from accel.formats.quantization_error import OutputError
from accel.formats.quantize_onnx import QuantizedModel, quantize_onnx
from accel.network.exact_scales import with_exact_scales
from accel.run.result import SCHEMA_VERSION

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN_LAYERS = 10


def quantize(
    model: Path,
    data: Path,
    shapes: tuple[str, ...],
    mean: str | None,
    std: str | None,
    activations: Any,
    method: Any,
    output: Path,
    per_layer: bool,
    as_json: bool,
) -> int:
    check_targets({"-o": output}, {"MODEL.onnx": model, "--calibrate": data})
    sizes = parse_shapes(shapes)
    normalization = [_numbers(name, text) for name, text in (("--mean", mean), ("--std", std))]
    with busy("quantizing"):
        if data.is_dir():
            samples = read_folder(data, with_shapes(read_file(model).inputs, sizes), *normalization)
        else:
            for name, text in (("--mean", mean), ("--std", std)):
                if text is not None:
                    raise AccelError(f"{name} is given with {str(data)!r}; it is for a folder of pictures")
            samples = read_archive("--calibrate", data)
        found = quantize_onnx(
            model,
            samples,
            activations=activations,
            method=method,
            shapes=sizes,
            per_layer=per_layer,
            adjust=with_exact_scales,
        )
    write_atomically(output, found.content)
    if as_json:
        print_json(_as_data(found, output))
        return 0
    show(_table("output", found.errors))
    if per_layer:
        show(_table("tensor", found.layers[:_SHOWN_LAYERS]))
    show(FiguresTable(_rows(found)))
    wrote(output)
    return 0


def _numbers(option: str, text: str | None) -> list[float]:
    try:
        found = [] if text is None else [float(one) for one in text.split(",")]
    except ValueError:
        raise AccelError(f"{option} is {text!r}; it must be numbers, as 0.5 or 0.485,0.456,0.406") from None
    if not all(map(math.isfinite, found)) or (option == "--std" and 0 in found):
        raise AccelError(f"{option} is {text!r}; it must be finite numbers, and not 0 to divide by")
    return found


def _as_data(found: QuantizedModel, output: Path) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "output": str(output),
        "samples": found.samples,
        "macs": found.macs,
        "float_macs": found.float_macs,
        "per_channel": found.per_channel,
        "outputs": [_error_as_data(one) for one in found.errors],
        "layers": [_error_as_data(one) for one in found.layers],
    }


def _error_as_data(one: OutputError) -> dict[str, Any]:
    return as_dict(one) | {"snr": one.snr if math.isfinite(one.snr) else None}


def _table(what: str, errors: tuple[OutputError, ...]) -> "Table":
    table = text_table()
    table.add_column(what)
    for heading in ("values", "largest error", "mean error", "SNR", "same winner"):
        table.add_column(heading, justify="right")
    for one in errors:
        table.add_row(
            one.name,
            f"{one.values:,}",
            f"{one.largest:.4g}",
            f"{one.mean:.4g}",
            f"{one.snr:.1f} dB",
            "" if one.agreement is None else f"{one.agreement:.1%}",
        )
    return table


def _rows(found: QuantizedModel) -> list[tuple[str, str]]:
    return [
        ("samples", f"{found.samples:,}"),
        ("weight scales", "for each output channel" if found.per_channel else "for each tensor"),
        ("MACs", f"{found.macs:,}, {found.float_macs:,} of them in float32"),
    ]

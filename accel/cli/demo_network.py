"""The command ``accel demo --network``."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.cli.run_network import layers_table
from accel.cli.shared_options import machine_row
from accel.cli.terminal_output import FiguresTable, busy, print_json, show, terminal_width
from accel.compiler.target.machine import machine
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.network.digits import INPUT, MODEL, OUTPUT, WHITE, as_images, digits_network, digits_pictures
from accel.network.network_program import NetworkProgram
from accel.network.network_result import NetworkResult
from accel.run.result import SCHEMA_VERSION

Array = npt.NDArray[Any]

_DRAWN = 3
_SHADES = " .:-=+*#%@"
_HERTZ = 1_000_000


def demo_network(*, count: int, config: str, backend: str, clock: int, as_json: bool) -> int:
    """Classify pictures at ``clock`` MHz, and print the results. Raise a MismatchError if a tensor differs
    from numpy, or with ``as_json`` return 1."""
    target = machine(config)
    pictures, classes = digits_pictures()
    pictures, classes = _mixed(pictures)[:count], _mixed(classes)[:count]
    images = as_images(pictures)
    with busy("compiling"):
        program = digits_network().build(target)
    results = []
    with busy("running") as note:
        for number, image in enumerate(images):
            note(f"picture {number + 1} of {count}")
            results.append(program.run({INPUT: image[None]}, backend=backend))
    scores = np.concatenate([result.outputs[OUTPUT] for result in results])
    figures = _figures(program, results, scores, images, classes, clock)
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION} | figures)
        return 1 if figures["mismatches"] else 0
    show(f"Handwritten digits, one picture after another, on backend {backend!r}")
    show(FiguresTable([machine_row(program.config)]), "")
    show("1. The network: what runs where, and the cycles of one picture")
    show(layers_table(results[0], terminal_width()))
    show(f"\n2. The first {min(_DRAWN, count)} of {count} pictures")
    show(_drawn(pictures[:_DRAWN], classes, figures["predictions"]))
    show("\n3. What came of it")
    show(FiguresTable(_rows(figures, results[0])))
    for result in results:
        result.raise_if_wrong()
    return 0


def _mixed(array: Array) -> Array:
    """Every prefix of this order covers many classes."""
    return array[np.random.default_rng(0).permutation(len(array))]


def _figures(
    program: NetworkProgram,
    results: Sequence[NetworkResult],
    scores: Array,
    images: Array,
    classes: Array,
    clock: int,
) -> dict[str, Any]:
    first, found = results[0], scores.argmax(1)
    right = int((found == classes).sum())
    return {
        "config": program.config.label,
        "backend": first.backend,
        "pictures": len(images),
        "right": right,
        "accuracy": right / len(images),
        "cycles": first.cycles,
        "clock_mhz": clock,
        "pictures_per_second": clock * _HERTZ / first.cycles if first.cycles else None,
        "utilization": first.utilization,
        "macs": first.macs,
        "host_macs": first.host_macs,
        "mismatches": sum(result.wrong or 0 for result in results),
        "onnxruntime": _agreement(images, scores) if find_spec("onnxruntime") else None,
        "compile_seconds": program.compile_seconds,
        "simulate_seconds": sum(result.simulate_seconds for result in results),
        "classes": classes.tolist(),
        "predictions": found.tolist(),
        "layers": [layer.to_dict() for layer in first.layers],
    }


def _agreement(images: Array, scores: Array) -> dict[str, int]:
    """Count pictures with the same class and with the same scores, bit for bit, in ONNX Runtime."""
    theirs = run_onnx_runtime(MODEL.read_bytes(), {INPUT: images}, [OUTPUT])[OUTPUT]
    return {
        "same_class": int((theirs.argmax(1) == scores.argmax(1)).sum()),
        "same_scores": int((theirs == scores).all(1).sum()),
    }


def _rows(figures: dict[str, Any], first: NetworkResult) -> list[tuple[str, str]]:
    count = figures["pictures"]
    rows = [("right", f"{figures['right']} of {count} pictures, {figures['accuracy']:.1%}")]
    wrong = [
        f"{wanted} as {found}"
        for wanted, found in zip(figures["classes"], figures["predictions"], strict=True)
        if wanted != found
    ]
    if wrong:
        rows.append(("read wrongly", ", ".join(wrong)))
    if figures["cycles"]:
        rows.append(("cycles", f"{figures['cycles']:,} for each picture"))
        rows.append(
            (f"at {figures['clock_mhz']} MHz", f"{figures['pictures_per_second']:,.0f} pictures per second")
        )
        rows.append(("utilization", f"{figures['utilization']:.1%} of the GEMM core"))
    rows.append(("MACs", f"{figures['macs']:,}, {figures['host_macs']:,} of them on the host"))
    mismatches = figures["mismatches"]
    equal = (
        f"{mismatches:,} MISMATCHES" if mismatches else f"all {len(first.tensors)} tensors equal, each time"
    )
    rows.append(("compared to numpy", equal))
    same = figures["onnxruntime"]
    agreement = "not installed; the extra onnx brings it"
    if same is not None:
        agreement = f"same class for {same['same_class']} of {count}, same scores for {same['same_scores']}"
    rows.append(("ONNX Runtime", agreement))
    rows.append(
        ("compiled, run in", f"{figures['compile_seconds']:.2f} s, {figures['simulate_seconds']:.2f} s")
    )
    return rows


def _drawn(pictures: Array, classes: Array, found: Sequence[int]) -> str:
    count, height, width = pictures.shape
    dark = pictures.reshape(count, height // 2, 2, width).mean(2)
    shades = (dark * (len(_SHADES) - 1) / WHITE).round().astype(int)
    lines = [
        "  ".join("".join(_SHADES[one] for one in row) for row in rows) for rows in shades.swapaxes(0, 1)
    ]
    captions = (f"a {wanted}, read as {one}" for wanted, one in zip(classes, found, strict=False))
    return "\n".join(
        [*lines, "  ".join(text.center(width) for text, _ in zip(captions, pictures, strict=False))]
    )

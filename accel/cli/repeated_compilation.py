"""``accel compile onnx`` with a cache of compiled models."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.run_choices import CONFIG_SUFFIXES
from accel.cli.compiled_models import (
    SECONDS_ROW,
    CompiledModel,
    read_compiled_model,
    seconds_text,
)
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, show


def compile_onnx(**options: Any) -> int:
    begin = time.perf_counter()
    known = read_compiled_model(options)
    if known is not None:
        _write(*known, options, begin)
        return 0
    from accel.cli import compile_network  # it imports the compiler

    return compile_network.compile_onnx(**options)


def _write(known: CompiledModel, content: bytes, options: Mapping[str, Any], begin: float) -> None:
    model, config = options["model"], Path(options["config"])
    output = options["output"] or Path(f"{model.stem}.accel")
    inputs = {"--config": config} if config.suffix in CONFIG_SUFFIXES else {}
    check_targets({"-o": output}, {"MODEL.onnx": model} | inputs)
    write_atomically(output, content)
    seconds = time.perf_counter() - begin
    if options["as_json"]:
        print_json(known.figures | {"output": str(output), "compile_seconds": seconds})
        return
    rows = [(name, seconds_text(seconds) if name == SECONDS_ROW else text) for name, text in known.rows]
    show(FiguresTable(rows))
    wrote(output)

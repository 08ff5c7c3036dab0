"""The cached output of ``accel compile onnx``.

The key covers the model's file and the options, so that the model is not parsed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from accel.base.result_cache import MODEL_KIND, NETWORK_KIND, cache_key, result_cache
from accel.base.run_choices import CONFIG_SUFFIXES

_EXTERNAL_DATA = b"location"
"""An ONNX model with this key names other files of constants."""
_UNCOVERED = ("explain", "annotate", "tuned", "rules")
"""Options whose output the entry lacks, or whose files the key lacks."""
SECONDS_ROW = "compiled in"


@dataclass(frozen=True, kw_only=True)
class CompiledModel:
    """The ``--json`` object, the table's rows, and the key of the network's own entry."""

    figures: dict[str, Any]
    rows: Sequence[tuple[str, str]]
    network: str


def seconds_text(seconds: float) -> str:
    return f"{seconds:.2f} s"


def read_compiled_model(options: Mapping[str, Any]) -> tuple[CompiledModel, bytes] | None:
    """Return an entry and the network's file, or None."""
    cache, key = result_cache(), model_key(options)
    if cache is None or key is None:
        return None
    content = cache.read(MODEL_KIND, key)
    if content is None:
        return None
    known = CompiledModel(**json.loads(content))
    file = cache.read(NETWORK_KIND, known.network)
    return None if file is None else (known, file)


def write_compiled_model(key: str, known: CompiledModel) -> None:
    cache = result_cache()
    if cache is not None:
        cache.write(MODEL_KIND, key, json.dumps(vars(known), separators=(",", ":")).encode())


def model_key(options: Mapping[str, Any]) -> str | None:
    """Return None without a cache, or if a key cannot cover options or model."""
    if result_cache() is None or any(options[name] for name in _UNCOVERED):
        return None
    model, config = options["model"], Path(options["config"])
    try:
        if config.exists() and config.suffix not in CONFIG_SUFFIXES:
            return None
        machine = config.read_bytes() if config.suffix in CONFIG_SUFFIXES else b""
        content = model.read_bytes()
    except OSError:  # the compiler reports it
        return None
    if _EXTERNAL_DATA in content:
        return None
    values = {
        name: value for name, value in options.items() if name not in ("model", "output", "as_json", "jobs")
    }
    source = click.get_current_context().get_parameter_source("config")
    is_default = source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return cache_key(
        *("model", model.name, content, machine),
        json.dumps([values, is_default], sort_keys=True),
    )

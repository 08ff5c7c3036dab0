"""The output of ``accel compile onnx`` for models that it has compiled before, in the cache on disk.

The key covers the content of the model's file and the options, so the command finds an entry without
importing, parsing or compiling the model. An entry has the figures that the command prints, and the key of
the network's own entry, which holds the file to write.
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
"""Key by which an ONNX model names other files of constants. The content of a model with this text may not
cover all constants."""
_UNCOVERED = ("explain", "annotate", "tuned", "rules")
"""Options whose output the entry lacks, or whose files the key does not cover."""
SECONDS_ROW = "compiled in"
"""Name of the table's row with the seconds of the compilation."""


@dataclass(frozen=True, kw_only=True)
class CompiledModel:
    """The output of ``accel compile onnx`` for a model.

    Attributes:
        figures: the object of ``--json``.
        rows: names and values of the printed table.
        network: the key of the compiled network in the cache.
    """

    figures: dict[str, Any]
    rows: Sequence[tuple[str, str]]
    network: str


def seconds_text(seconds: float) -> str:
    """Return the seconds of a compilation as the table shows them, for example ``0.82 s``."""
    return f"{seconds:.2f} s"


def read_compiled_model(options: Mapping[str, Any]) -> tuple[CompiledModel, bytes] | None:
    """Return the output for a model and the content of the network's file, or None without an entry.

    Args:
        options: values of the options and arguments of ``accel compile onnx``, by name.
    """
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
    """Write the output for a model to the cache.

    Args:
        key: see :func:`model_key`.
    """
    cache = result_cache()
    if cache is not None:
        cache.write(MODEL_KIND, key, json.dumps(vars(known), separators=(",", ":")).encode())


def model_key(options: Mapping[str, Any]) -> str | None:
    """Return the key of a model's entry, or None without a cache or if a key cannot cover options or model.

    Args:
        options: as those of :func:`read_compiled_model`.
    """
    if result_cache() is None or any(options[name] for name in _UNCOVERED):
        return None
    model, config = options["model"], Path(options["config"])
    try:
        if config.exists() and config.suffix not in CONFIG_SUFFIXES:
            return None
        machine = config.read_bytes() if config.suffix in CONFIG_SUFFIXES else b""
        content = model.read_bytes()
    except OSError:  # the compiler reports the file
        return None
    if _EXTERNAL_DATA in content:
        return None
    values = {name: value for name, value in options.items() if name not in ("model", "output", "as_json")}
    source = click.get_current_context().get_parameter_source("config")
    is_default = source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return cache_key(
        *("model", model.name, content, machine),
        json.dumps([values, is_default], sort_keys=True),
    )

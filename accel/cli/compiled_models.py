"""Models that were compiled before with the same options: their figures and files, from the cache on disk.

The key is the model file's content with the options, so that nothing is imported, parsed or compiled again.
An entry has the figures that the command prints, and the key of the network's own entry, which holds the
file to write.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from accel.base.result_cache import cache_key, result_cache

_KIND = "model"
CONFIG_SUFFIXES = (".toml", ".json")
"""Suffixes by which a configuration is a file, whether it exists or not."""
_EXTERNAL = b"location"
"""A model with this text may have constants in other files, which its content does not cover."""
_UNCOVERED = ("explain", "annotate", "tuned", "rules")
"""Options whose output the entry lacks, or whose files the key does not cover."""
SECONDS_ROW = "compiled in"


@dataclass(frozen=True, kw_only=True)
class CompiledModel:
    """What ``accel compile onnx`` prints of a model.

    Attributes:
        figures: those of ``--json``, without the output's name.
        rows: the table's.
        network: the key of the compiled network in the cache.
    """

    figures: dict[str, Any]
    rows: Sequence[tuple[str, str]]
    network: str


def seconds_text(seconds: float) -> str:
    """Return the seconds of a compilation as the table has them."""
    return f"{seconds:.2f} s"


def recall(options: Mapping[str, Any]) -> tuple[CompiledModel, bytes] | None:
    """Return what the command printed of a model, and the network's file, or None if it has to be compiled.

    Args:
        options: those of the command.
    """
    cache, key = result_cache(), model_key(options)
    content = None if cache is None or key is None else cache.read(_KIND, key)
    if cache is None or content is None:
        return None
    known = CompiledModel(**json.loads(content))
    file = cache.read("network", known.network)
    return None if file is None else (known, file)


def remember(options: Mapping[str, Any], known: CompiledModel) -> None:
    """Keep what the command prints of a model for the next time."""
    cache, key = result_cache(), model_key(options)
    if cache is not None and key is not None:
        cache.write(_KIND, key, json.dumps(vars(known), separators=(",", ":")).encode())


def model_key(options: Mapping[str, Any]) -> str | None:
    """Return the key of a model's entry, or None if the options or the model have none.

    Args:
        options: those of the command.
    """
    if any(options[name] for name in _UNCOVERED):
        return None
    model, config = options["model"], Path(options["config"])
    try:
        if config.exists() and config.suffix not in CONFIG_SUFFIXES:
            return None
        machine = config.read_bytes() if config.suffix in CONFIG_SUFFIXES else b""
        content = model.read_bytes()
    except OSError:  # the compiler says which file is at fault
        return None
    if _EXTERNAL in content:
        return None
    values = {name: value for name, value in options.items() if name not in ("model", "output", "as_json")}
    source = click.get_current_context().get_parameter_source("config")
    is_default = source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return cache_key(
        *("model", model.name, content, machine),
        json.dumps([values, is_default], sort_keys=True),
    )

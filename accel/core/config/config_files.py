"""Read configurations from files and from plain data."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.base.errors import ConfigError, nearest
from accel.base.json_types import kind_of, shown
from accel.base.run_choices import CONFIG_SUFFIXES
from accel.core.alu_operations import STOCK_NAMES
from accel.core.config.alu_ops_field import checked_alu_ops
from accel.core.config.machine_config import ALU_OPS, NAMED, SPECS, Config, parse_quantity
from accel.core.config.vta_config import VTA_IGNORED_KEYS, from_vta

_MAX_FILE_BYTES = 1 << 20
"""Every field at its longest value takes less than 1 KiB, so a larger file is a mistake."""


def load_config(name_or_path: str | Path) -> Config:
    """Return a named configuration, or read one from a file.

    The file is TOML if its name ends in ``.toml``, otherwise JSON. It has one of three forms: fields by name,
    for example ``{"name": "mine", "batch": 2}``, the output of ``accel configs NAME --json``, or the keys of
    VTA's ``vta_config.json``. The default name is the file's name without suffix.

    Raises:
        ConfigError: unknown name, unreadable file, unknown key or bad value.
    """
    text = str(name_or_path)
    if text in NAMED:
        return NAMED[text]
    path = Path(name_or_path)
    if path.suffix not in CONFIG_SUFFIXES and not path.exists():
        raise ConfigError(
            f"{text!r} is not a configuration; {nearest(text, NAMED)}; the path of a TOML or JSON file "
            "works too"
        )
    data = _single_config(text, _read_file(path))
    name = "".join(one if one.isprintable() else "?" for one in path.stem)
    if any(key.startswith("LOG_") or key in VTA_IGNORED_KEYS for key in data):
        return from_vta(data, name=name)
    return from_dict({"name": name} | data)


def _read_file(path: Path) -> dict[str, Any]:
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigError(f"configuration {str(path)!r} is larger than {_MAX_FILE_BYTES:,} bytes")
        text = content.decode()
        data = tomllib.loads(text) if kind == "TOML" else json.loads(text)
    except OSError as error:
        raise ConfigError(f"configuration {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"configuration {str(path)!r} is not {kind}: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {str(path)!r} holds {kind_of(data)}; a JSON object is needed")
    return data


def _single_config(text: str, data: dict[str, Any]) -> dict[str, Any]:
    if "configs" not in data:
        return data
    found = data["configs"]
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
        what = f"{len(found)} of them" if isinstance(found, list) else kind_of(found)
        raise ConfigError(
            f"configuration {text!r} has {what} in 'configs'; one is needed, as 'accel configs vta --json' "
            f"prints it"
        )
    return found[0]


def from_dict(data: Mapping[str, Any]) -> Config:
    """Invert :meth:`Config.to_dict`. Missing fields get their defaults.

    Raises:
        ConfigError: a key is not a field, or a value is bad.
    """
    values = dict(data)
    name = values.pop("name", "custom")
    if not isinstance(name, str) or not name.isprintable():
        raise ConfigError(f"name is {shown(name)}; it must be a line of text")
    alu_ops = values.pop(ALU_OPS, STOCK_NAMES)
    for key in values:
        if key not in SPECS:
            raise ConfigError(f"{key!r} is not a configuration field; {nearest(key, [*SPECS, ALU_OPS])}")
    numbers: dict[str, Any] = {key: parse_quantity(key, value) for key, value in values.items()}
    return Config(name=name, alu_ops=checked_alu_ops(alu_ops), **numbers)

"""The distribution's extras, and the message for a missing one."""

import shlex
import sys
from pathlib import Path
from typing import Literal

DISTRIBUTION = "accel-stack"
"""In package indexes, where ``accel`` is an unrelated package."""

Extra = Literal[
    "cluster",
    "explore",
    "formal",
    "fpga",
    "notebook",
    "onnx",
    "parquet",
    "plot",
    "rewrite",
    "rtl",
    "studio",
    "synthesis",
    "tables",
    "tflite",
    "tune",
]
"""As in ``pyproject.toml``."""

CHECKOUT = "PATH-OF-THE-CHECKOUT"
"""For an unknown folder of the checkout."""


_PACKAGE = Path(__file__).resolve().parents[1]  # strict editable installations link files


def checkout(package: Path = _PACKAGE) -> Path | None:
    """Return the checkout of the running package, or None if it is installed elsewhere."""
    root = package.resolve().parent
    try:
        text = (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if f'name = "{DISTRIBUTION}"' in text.splitlines() else None


def install_command(extra: Extra) -> str:
    root = checkout()
    source = f"{CHECKOUT}[{extra}]" if root is None else f"{root}[{extra}]"
    editable = "" if root is None else "--config-settings editable_mode=strict -e "
    python = shlex.quote(sys.executable or "python")
    return f'{python} -m pip install {editable}"{source}"'


def not_installed(need: str, extra: Extra) -> str:
    """Return ``plots need matplotlib, which is not installed; python -m pip install ... brings it``."""
    return f"{need}, which is not installed; {install_command(extra)} brings it"

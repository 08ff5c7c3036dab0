"""A package as a folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.base.atomic_files import write_folder
from accel.base.errors import ProgramError
from accel.core.register_manual import c_header
from accel.deployment.binary_files import content_of
from accel.deployment.c_tables import data_source, example_source, header, source
from accel.deployment.deployment_steps import Deployment
from accel.deployment.package_manifest import FORMAT, MANIFEST, manifest
from accel.graph.graph_tensor import Array

_DRIVER = Path(__file__).parent / "driver"
DRIVER_FILES = (
    "accel_driver.c",
    "accel_driver.h",
    "accel_host_steps.c",
    "accel_host_steps.h",
    "accel_network.c",
    "accel_network.h",
)
REGISTERS_FILE = "accel_registers.h"


def package_files(
    deployment: Deployment, *, embed: bool = False, example: Mapping[str, Array] | None = None
) -> dict[str, bytes]:
    """Return files by name, with ``embed`` binary files as C, and with ``example`` a run as C."""
    name, content = deployment.name, content_of(deployment)
    texts = {one: (_DRIVER / one).read_text(encoding="utf-8") for one in DRIVER_FILES}
    texts[REGISTERS_FILE] = c_header()
    texts[f"{name}.h"] = header(deployment, content, embedded=embed, example=example is not None)
    texts[f"{name}.c"] = source(deployment, content)
    if embed:
        texts[f"{name}_data.c"] = data_source(deployment, content)
    if example is not None:
        texts[f"{name}_example.c"] = example_source(deployment, example)
    files = content.files | {one: text.encode() for one, text in sorted(texts.items())}
    data = manifest(deployment, content, files)
    return files | {MANIFEST: (json.dumps(data, indent=1) + "\n").encode()}


def write_package(
    deployment: Deployment,
    path: Path,
    *,
    embed: bool = False,
    example: Mapping[str, Array] | None = None,
    force: bool = False,
) -> dict[str, bytes]:
    """Write a package to a new or empty folder, all or nothing, and return its files."""
    files = package_files(deployment, embed=embed, example=example)
    write_folder(path, files, replaceable(path) if force else ())
    return files


def check_folder(path: Path, *, force: bool) -> None:
    """Raise a ProgramError for a folder with other files."""
    if path.is_dir() and not force and any(path.iterdir()):
        raise ProgramError(
            f"folder {str(path)!r} is not empty; give another one, or --force to replace a package"
        )


def replaceable(path: Path) -> set[str]:
    """Return the files of an existing package, if any."""
    try:
        data: Any = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        return {MANIFEST, *data["files"]} if data["format"] == FORMAT else set()
    except (OSError, ValueError, TypeError, KeyError):
        return set()

"""A package as a folder: binary files, manifest, driver and tables in C."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.base.errors import ProgramError
from accel.base.files import write_folder
from accel.core.register_manual import c_header
from accel.graph.tensor import Array
from accel.package.content import content_of
from accel.package.deployment import Deployment
from accel.package.manifest import FORMAT, MANIFEST, manifest
from accel.package.source import data_source, example_source, header, source

_DRIVER = Path(__file__).parent / "driver"
DRIVER_FILES = ("accel_driver.c", "accel_driver.h", "accel_network.c", "accel_network.h")
"""The same in every package."""
REGISTERS_FILE = "accel_registers.h"


def package_files(
    deployment: Deployment, *, embed: bool = False, example: Mapping[str, Array] | None = None
) -> dict[str, bytes]:
    """The files of a package, by name.

    Args:
        deployment: what it does.
        embed: add the binary files as C, too.
        example: add a run's inputs and outputs, by name, as C.
    """
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
    """Write a package; on an error nothing is left behind.

    Args:
        deployment: what it does.
        path: of the folder; it must be new or empty.
        embed: add the binary files as C, too.
        example: add a run's inputs and outputs, by name, as C.
        force: replace a package that is there already.

    Returns:
        The files, by name.

    Raises:
        ProgramError: the folder cannot be written, or holds something else.
    """
    files = package_files(deployment, embed=embed, example=example)
    write_folder(path, files, replaceable(path) if force else ())
    return files


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse a folder that :func:`write_package` would refuse, before any work is done for it.

    Raises:
        ProgramError: as it does.
    """
    if path.is_dir() and not force and any(path.iterdir()):
        raise ProgramError(
            f"folder {str(path)!r} is not empty; give another one, or --force to replace a package"
        )


def replaceable(path: Path) -> set[str]:
    """The names of the files of a package that is there; none where there is none."""
    try:
        data: Any = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        return {MANIFEST, *data["files"]} if data["format"] == FORMAT else set()
    except (OSError, ValueError, TypeError, KeyError):
        return set()

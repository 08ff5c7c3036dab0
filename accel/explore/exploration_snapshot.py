"""Measured points of an exploration in a file, for the studio."""

import json
from pathlib import Path
from typing import Any

from accel.base.errors import SweepError
from accel.benchmarks import default_epilogue, layers_of
from accel.core.config import NAMED, Config
from accel.explore.exploration_result import Exploration, Point
from accel.explore.exploration_tasks import MakeLayer, MakeModel, MakeNetwork, Workload
from accel.explore.front_page import exploration_facts, page_data

SNAPSHOT_SUFFIX = ".points.json"
_VERSION = 1
_MAX_BYTES = 64 << 20
_NAMED_BASES = {0: "vta", 1: "vta-int8"}
"""Base of settings by ``post``, if the base machine has no name."""


def snapshot(exploration: Exploration, *, is_running: bool) -> dict[str, Any]:
    """Return :func:`~accel.explore.front_page.page_data` with ``title``, ``facts``, ``running``,
    ``workloads`` with the studio's state for each layer, and ``machine`` and ``settings`` for each point."""
    data = page_data(exploration)
    measured = [one for one in exploration.points if one.status == "measured"]
    if exploration.base.status == "measured":
        measured.append(exploration.base)
    points = [
        entry | _machine_state(exploration, point)
        for entry, point in zip(data["points"], measured, strict=True)
    ]
    return {
        "exploration": _VERSION,
        "title": exploration.title,
        "facts": exploration_facts(exploration),
        "running": is_running,
        "workloads": [
            {"name": one.name, "layers": _layers(one, exploration.space.base)}
            for one in exploration.workloads
        ],
        **data,
        "points": points,
    }


def snapshot_bytes(exploration: Exploration, *, is_running: bool) -> bytes:
    return json.dumps(snapshot(exploration, is_running=is_running), separators=(",", ":")).encode()


def read_snapshot(path: Path) -> bytes:
    """Return a snapshot's content.

    Raises:
        SweepError: unreadable, or no snapshot.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SweepError(f"exploration {str(path)!r} cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise SweepError(f"exploration {str(path)!r} has more than {_MAX_BYTES:,} bytes")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise SweepError(f"exploration {str(path)!r} is not JSON; 'accel explore' writes it again") from None
    if not isinstance(data, dict) or data.get("exploration") != _VERSION:
        raise SweepError(
            f"{str(path)!r} holds no points of an exploration; 'accel explore' writes them to files "
            f"*{SNAPSHOT_SUFFIX}"
        )
    return content


def find_snapshot(folder: Path) -> Path:
    """Return the snapshot in a folder of ``accel explore``.

    Raises:
        SweepError: none, or several.
    """
    found = sorted(folder.glob(f"*{SNAPSHOT_SUFFIX}"))
    if len(found) != 1:
        count = "no file" if not found else f"{len(found)} files"
        raise SweepError(
            f"folder {str(folder)!r} has {count} *{SNAPSHOT_SUFFIX}; give the folder of one exploration"
        )
    return found[0]


def _machine_state(exploration: Exploration, point: Point) -> dict[str, Any]:
    assert point.config is not None
    space = exploration.space
    name = space.base_name if space.base_name in NAMED else _NAMED_BASES[int(bool(space.base.post))]
    own, other = point.config.to_dict(), NAMED[name].to_dict()
    settings = {field: value for field, value in own.items() if field != "name" and value != other.get(field)}
    return {"machine": name, "settings": settings}


def _layers(workload: Workload, base: Config) -> list[dict[str, Any]]:
    """Return names of layers, and states without a machine."""
    make = workload.make
    if isinstance(make, MakeLayer):
        state = {"workload": make.operator, "parameters": dict(make.parameters)}
        return [{"name": workload.name, "state": state}]
    if isinstance(make, MakeNetwork):
        return [
            {"name": one.name, "state": {"workload": one.operator, "parameters": one.all_parameters}}
            for one in layers_of(make.network, default_epilogue(base))
        ]
    assert isinstance(make, MakeModel)
    return [{"name": workload.name, "state": {"file": make.path.name}}]

"""Damaged and hostile files of saved runs: each entry is refused by name, or has no effect on pages."""

import json
import random
import re
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.network.digits import INPUT, digits_network
from accel.network.saved_network_run import saved_network
from accel.views import Comparison, SavedRun
from tests.programs import archived, gemm_program
from tests.thorough import also

HOSTILE: tuple[Any, ...] = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "\x1b[31mred\r\n\x00",
    "",
    10**400,
    1 << 63,
    -1,
    0,
    0.5,
    float("nan"),
    float("-inf"),
    True,
    None,
    [],
    {},
    ["<b>"],
    {"<b>": "<i>"},
)
PLAIN_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "nav", "a", "section"),
    *("div", "table", "thead", "tbody", "tr", "th", "td", "b", "span", "svg", "text", "path"),
}


class Tags(HTMLParser):
    """Checks that a page has no elements and attributes but those that it always has."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in PLAIN_TAGS
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "style")]


@cache
def runs() -> dict[str, SavedRun]:
    """A program's run and a network's."""
    network = digits_network().build("vta-int8")
    ran = network.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)}, record=True)
    return {
        "program": SavedRun.of(gemm_program(8, 8, 8).run(), name="one", seed=3, overrides={"a": "b"}),
        "network": saved_network(ran),
    }


def members(name: str, folder: Path) -> dict[str, bytes]:
    path = folder / "valid.accelrun"
    runs()[name].save(path)
    with zipfile.ZipFile(path) as archive:
        return {member: archive.read(member) for member in archive.namelist()}


Path_ = tuple[str | int, ...]


def entries(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all entries. A list contributes its first and last element."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from entries(value, (*path, key))
    elif isinstance(data, list):
        for number in sorted({0, len(data) - 1} & set(range(len(data)))):
            yield from entries(data[number], (*path, number))


def changed(manifest: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """A manifest with another value at a path."""
    found = deepcopy(manifest)
    inner: Any = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


def names(manifest: Any, path: Path_) -> set[str]:
    """The names on the path of an entry, and inside it."""
    found = {key for key in path if isinstance(key, str)}
    for key in path:
        manifest = manifest[key]
    return found | {key for inner in entries(manifest) for key in inner if isinstance(key, str)}


SUMS = (
    "its critical path does not take",
    "its critical path is damaged",
    "its layers do not take",
    "critical.bin has",
    "states.bin has",
    "it is not the file of a run",
    "its manifest has no 'cause'",
)
"""Errors that concern several entries, or one inside the hostile value."""


def loaded(folder: Path, content: dict[str, bytes]) -> SavedRun | str:
    """The run, or the error in words."""
    path = archived(folder / "hostile.accelrun", content.items())
    try:
        return SavedRun.load(path)
    except ProgramError as error:
        message = str(error)
        assert message.isprintable()
        assert len(message) < 1000
        return message.partition("hostile.accelrun': ")[2] or message


def check_harmless(name: str, run: SavedRun) -> None:
    """Comparisons with the run are well-formed JSON, text and HTML without anything smuggled in."""
    found = Comparison(run, runs()[name])
    json.dumps(found.to_dict(), allow_nan=False)
    page = found.html()
    Tags().feed(page)
    assert not re.search(r"<script|onerror=[\"']?alert|[\x00-\x09\x0b-\x1f]", page.partition("</style>")[2])
    assert all(line.isprintable() for line in found.timelines(100))


@pytest.mark.parametrize("name", [also("program"), "network"])
def test_every_entry_is_checked_or_escaped(name: str, tmp_path: Path) -> None:
    """An error names the entry, or the sum that it breaks."""
    content = members(name, tmp_path)
    manifest = json.loads(content["program.json"])
    accepted = 0
    for path in entries(manifest):
        for value in HOSTILE:
            text = json.dumps(changed(manifest, path, value))
            run = loaded(tmp_path, content | {"program.json": text.encode()})
            if isinstance(run, SavedRun):
                accepted += 1
                check_harmless(name, run)
                continue
            assert any(one in run for one in (*names(manifest, path), *SUMS)), (path, value, run)
    assert accepted > 100


@pytest.mark.parametrize("name", ["program", "network"])
def test_hostile_names_of_entries_have_no_effect(name: str, tmp_path: Path) -> None:
    content = members(name, tmp_path)
    manifest = json.loads(content["program.json"])
    for path in ((), ("figures",), ("figures", "stalls"), ("overrides",), ("traffic", 0)):
        for key in (one for one in HOSTILE if isinstance(one, str)):
            text = json.dumps(changed(manifest, (*path, key), key))
            run = loaded(tmp_path, content | {"program.json": text.encode()})
            assert isinstance(run, SavedRun), run
            check_harmless(name, run)


@pytest.mark.parametrize("member", ["critical.bin", "states.bin"])
def test_random_bytes_of_members_are_refused_or_harmless(member: str, tmp_path: Path) -> None:
    content = members("program", tmp_path)
    rng = random.Random(3)
    errors = set()
    for _ in range(150):
        data = bytearray(content[member])
        for _ in range(rng.choice((1, 1, 4))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        run = loaded(tmp_path, content | {member: bytes(data)})
        if isinstance(run, SavedRun):
            check_harmless("program", run)
        else:
            errors.add(run.partition(":")[0])
    known = {
        "critical.bin": {"its critical path is damaged", "its critical path does not take"},
        "states.bin": {"states.bin is damaged"},
    }
    assert errors
    assert {next((k for k in known[member] if one.startswith(k)), one) for one in errors} <= known[member]


def test_unprintable_characters_are_replaced(tmp_path: Path) -> None:
    content = members("program", tmp_path)
    manifest = json.loads(content["program.json"])
    text = json.dumps(manifest | {"name": "a\x1b[31mb\n"})
    run = loaded(tmp_path, content | {"program.json": text.encode()})
    assert isinstance(run, SavedRun)
    assert run.name == "a�[31mb�"

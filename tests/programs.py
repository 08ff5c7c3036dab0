"""Small programs, and damage to their files, that several tests share."""

import json
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import accel
from accel.core.config import NAMED, Config
from accel.core.isa import Finish, Instruction, encode
from accel.run.program import Program

TINY = NAMED["tiny"]


@cache
def gemm_program(
    M: int = 3, N: int = 9, K: int = 5, *, config: str | Config = "tiny", **options: Any
) -> Program:
    """C = A @ B of odd sizes, compiled with the default schedule."""
    return accel.build(accel.gemm(M, N, K, **options), config)


def handmade(*instructions: Instruction, config: Config = TINY, finish: bool = True, **parts: Any) -> Program:
    """A program of these instructions; without tensors and expression unless ``parts`` has them."""
    body = [*instructions, *([Finish()] if finish else [])]
    return Program(config=config, code=encode(body, config), code_offset=4096, **parts)


def rewritten(source: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Return a program file whose manifest ``change`` modifies or replaces, with valid checksums."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["program.json"])
    changed = change(manifest)
    members["program.json"] = json.dumps(manifest if changed is None else changed).encode()
    return archived(target, members.items())


def archived(target: Path, members: Sequence[tuple[str, bytes]] | Any) -> Path:
    """A zip archive."""
    target.unlink(missing_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target

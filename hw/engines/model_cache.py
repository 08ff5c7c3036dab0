"""Cache of compiled models.

A model's key covers the configuration without per-run settings, all sources, tools and options. It is built
once, also by several processes, and its file is complete or absent.
"""

import hashlib
import importlib.metadata
import inspect
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from accel.base.atomic_files import locked
from accel.base.child_processes import kill_programs, run_program
from accel.base.errors import EngineError
from accel.base.notices import notice, steps_done
from accel.base.version import __version__
from accel.core import units
from accel.core.config import Config

NATIVE = Path(__file__).resolve().parent / "native"
_HARDWARE = Path(__file__).parents[1]
_DECLARATIONS = Path(units.__file__).parent
"""The definition from which the hardware is derived."""


class Source(Struct, frozen=True, kw_only=True):
    path: Path
    flags: tuple[str, ...] = ()


Generate = Callable[[Config, Path], Sequence[Source | Path]]
"""Writes a model's C++ files to a folder. Returns the files to compile, and existing objects."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "accel" / "rtl"


def source_files() -> list[Path]:
    folders = (_HARDWARE, _DECLARATIONS)
    written = [path for folder in folders for kind in ("*.py", "*.v") for path in folder.rglob(kind)]
    return sorted([*written, *NATIVE.rglob("*.*")])


@cache
def _source_digest() -> str:
    return _digest(source_files())


def _datapath_files(config: Config) -> list[Path]:
    hand_made = (one.datapath for one in config.operations.values() if one.datapath is not None)
    return sorted({Path(inspect.getfile(inspect.unwrap(one))) for one in hand_made})


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compiler() -> str:
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "c++", "clang++"]:
        found = shutil.which(name)
        if found is not None:
            return found
    name = f"C++ compiler {wanted!r}" if wanted else "C++ compiler"
    raise EngineError(f"no {name} is installed; install g++, or use the engine pysim")


@cache
def _compiler_version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return str(done.stdout)


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def model(
    engine: str,
    config: Config,
    flags: Sequence[str],
    packages: Sequence[str],
    generate: Generate,
    *,
    libraries: Sequence[str] = (),
) -> Path:
    """Return a model's shared library, built if it is not in the cache. The key includes the versions of
    Python ``packages``."""
    if not sys.platform.startswith("linux"):
        raise EngineError(f"the engine {engine} runs on Linux only; use the engine pysim")

    def build(target: Path) -> None:
        notice(
            f"building the hardware model of {config.label} for {engine}, once; "
            "this takes about half a minute"
        )
        with tempfile.TemporaryDirectory(prefix="accel-") as name:
            folder = Path(name)
            parts = generate(config.hardware, folder)
            total = len(parts) + 2  # the first step generates, the last one links
            steps_done(1, total)
            finished = itertools.count(2)

            def compiled(part: Source | Path) -> Path:
                made = _object(part, folder, flags)
                steps_done(next(finished), total)
                return made

            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                try:
                    objects = list(pool.map(compiled, parts))
                except BaseException:  # the pool would wait for its compilers
                    pool.shutdown(wait=False, cancel_futures=True)
                    kill_programs()
                    raise
            run([compiler(), "-shared", "-o", str(target), *map(str, objects), "-lpthread", *libraries])
            steps_done(total, total)

    identity = {
        "config": config.hardware.to_dict(),
        "flags": list(flags),
        "packages": [_version(name) for name in packages],
        "sources": _source_digest(),
        "datapaths": _digest(_datapath_files(config)),
    }
    return _kept(engine, ".so", identity, build)


def library_object(source: Path, flags: Sequence[str], package: str) -> Path:
    """Return an object of an engine's library, shared by all models."""
    headers = _digest(sorted(NATIVE.rglob("*.h")))  # some of our headers replace the library's
    identity = {
        "path": str(source),
        "flags": list(flags),
        "packages": [_version(package)],
        "headers": headers,
    }
    return _kept(source.stem, ".o", identity, lambda target: _compile(source, target, flags))


def _kept(name: str, suffix: str, identity: dict[str, Any], make: Callable[[Path], None]) -> Path:
    command = compiler()
    everything = identity | {"accel": __version__, "compiler": [command, _compiler_version(command)]}
    key = hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:24]
    folder = cache_folder()
    path = folder / f"{name}-{key}{suffix}"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{name}-{key}.lock"):
            if not path.exists():
                temporary = folder / f".{name}-{key}-{os.getpid()}{suffix}"
                try:
                    make(temporary)
                    os.replace(temporary, path)
                finally:
                    temporary.unlink(missing_ok=True)
    except OSError as error:
        raise EngineError(f"the model cannot be kept in {str(folder)!r}: {error.strerror}") from None
    return path


def _object(part: Source | Path, folder: Path, flags: Sequence[str]) -> Path:
    if isinstance(part, Path):
        return part
    target = folder / f"{part.path.stem}.o"
    _compile(part.path, target, [*flags, f"-I{folder}", f"-I{NATIVE}", *part.flags])
    return target


def _compile(source: Path, target: Path, flags: Sequence[str]) -> None:
    run([compiler(), "-std=c++17", "-fPIC", *flags, "-c", "-o", str(target), str(source)])


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    done = run_program(command, environment=environment)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.splitlines()
        raise EngineError(f"{Path(command[0]).name} fails: {lines[0] if lines else done.returncode}")
    return str(done.stdout)

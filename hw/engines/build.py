"""Compiled models, kept in the user's cache.

A model's identity is all that goes into it: the configuration without what is set per run, the sources
of the hardware and of the declarations it derives from, the harness, tools and options. A model is built
once, also by processes that want it at the same time, and its file appears whole or not at all.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from accel.config import Config
from accel.errors import EngineError
from accel.version import __version__

NATIVE = Path(__file__).parent / "native"
_HARDWARE = Path(__file__).parents[1]
DECLARATIONS = (
    "access",
    "config",
    "errors",
    "events",
    "faults",
    "isa",
    "order",
    "registers",
    "timing",
)
"""The modules of accel that the hardware derives from."""

Generate = Callable[[Config, Path], Sequence[Path]]
"""Write a model's C++ sources into a folder; returns those to compile."""


def cache_folder() -> Path:
    """Where models are kept: ``accel/rtl`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "accel" / "rtl"


def source_files() -> list[Path]:
    """Every file that a model depends on."""
    package = Path(sys.modules["accel"].__path__[0])
    files = [*_HARDWARE.glob("*.py"), *(_HARDWARE / "engines").glob("*.py"), *NATIVE.iterdir()]
    for name in DECLARATIONS:
        single = package / f"{name}.py"
        files += [single] if single.exists() else (package / name).glob("*.py")
    return sorted(files)


@cache
def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compiler() -> str:
    """The C++ compiler: ``$CXX``, or g++, c++ or clang++, the first that is there.

    Raises:
        EngineError: there is none.
    """
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "c++", "clang++"]:
        found = shutil.which(name)
        if found is not None:
            return found
    raise EngineError(
        f"no C++ compiler is installed{f' as {wanted!r}' if wanted else ''}; "
        "install g++, or use the engine pysim"
    )


@cache
def _compiler_version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return str(done.stdout)


def tool_version(package: str) -> str:
    """The version of an installed Python package, or ``none``."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def model(
    engine: str, config: Config, options: dict[str, Any], generate: Generate, flags: Sequence[str]
) -> Path:
    """The shared library of a model, built if it is not there yet.

    Args:
        engine: its name.
        config: what to build.
        options: all that ``generate`` depends on besides.
        generate: writes the sources.
        flags: for the compiler.

    Raises:
        EngineError: a tool is missing or fails, or this is not Linux.
    """
    if not sys.platform.startswith("linux"):
        raise EngineError(f"the engine {engine} runs on Linux only; use the engine pysim")
    command = compiler()
    identity = {
        "accel": __version__,
        "engine": engine,
        "config": config.hardware.to_dict(),
        "options": options,
        "flags": list(flags),
        "compiler": [command, _compiler_version(command)],
        "sources": _source_digest(),
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]
    folder = cache_folder()
    library = folder / f"{engine}-{key}.so"
    if library.exists():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{engine}-{key}.lock"):
            if not library.exists():
                _build(config.hardware, library, command, flags, generate)
    except OSError as error:
        raise EngineError(f"the model cannot be kept in {str(folder)!r}: {error.strerror}") from None
    return library


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes; its file goes with it."""
    import fcntl  # not on every platform  # noqa: PLC0415

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _build(config: Config, library: Path, command: str, flags: Sequence[str], generate: Generate) -> None:
    with tempfile.TemporaryDirectory(prefix="accel-") as name:
        folder = Path(name)
        sources = [*generate(config, folder), NATIVE / "harness.cpp"]
        includes = [f"-I{folder}", f"-I{NATIVE}"]
        compile_one = [command, "-std=c++17", "-fPIC", *flags, *includes, "-c"]

        def compiled(source: Path) -> Path:
            target = folder / f"{source.stem}.o"
            run([*compile_one, "-o", str(target), str(source)])
            return target

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(compiled, sources))
        ready = library.with_name(f".{library.name}-{os.getpid()}")
        try:
            run([command, "-shared", "-o", str(ready), *map(str, objects), "-lz", "-lpthread"])
            os.replace(ready, library)
        finally:
            ready.unlink(missing_ok=True)


def run(command: Sequence[str], **options: Any) -> str:
    """Run a tool; returns what it prints.

    Raises:
        EngineError: it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # noqa: S603
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.splitlines()
        raise EngineError(f"{Path(command[0]).name} fails: {lines[0] if lines else done.returncode}")
    return str(done.stdout)

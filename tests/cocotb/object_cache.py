"""A compiler cache: objects of Verilator's own library are compiled once for all designs.

As a program, ``object_cache.py FOLDER COMPILER ARGUMENTS...`` runs the compiler and keeps objects in FOLDER.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def write_compiler_wrapper(folder: Path) -> Path:
    """Write a program for ``OBJCACHE`` of Verilator's Makefiles into the cache's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "compile"
    temporary = folder / f"compile.{os.getpid()}"
    temporary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{__file__}" "{folder}" "$@"\n')
    temporary.chmod(0o755)
    os.replace(temporary, program)
    return program


def _compile(folder: Path, command: list[str]) -> int:
    source = Path(command[-1])
    is_library = "-c" in command and "-o" in command and source.match("verilator/include/verilated*.cpp")
    if not is_library:
        return subprocess.run(command, check=False).returncode
    place = command.index("-o") + 1
    target = Path(command[place])
    identity = [*command[:place], *command[place + 1 :], shutil.which(command[0]) or "", source.read_text()]
    kept = folder / f"{hashlib.sha256(chr(0).join(identity).encode()).hexdigest()}.o"
    with open(kept.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            temporary = kept.with_suffix(".new")
            code = subprocess.run([*command[:place], str(temporary), *command[place + 1 :]], check=False)
            if code.returncode:
                return code.returncode
            os.replace(temporary, kept)
    shutil.copyfile(kept, target)
    return 0


if __name__ == "__main__":
    sys.exit(_compile(Path(sys.argv[1]), sys.argv[2:]))

"""A cache in front of the C++ compiler: objects of Verilator's own library are compiled once for all designs.

As a program, ``objects.py FOLDER COMPILER ARGUMENTS...`` runs the compiler and keeps objects in FOLDER.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def front(folder: Path) -> Path:
    """Write a compiler wrapper for ``OBJCACHE`` of Verilator's Makefiles into ``folder``,
    which holds the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "compile"
    temporary = folder / f"compile.{os.getpid()}"
    temporary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{__file__}" "{folder}" "$@"\n')
    temporary.chmod(0o755)
    os.replace(temporary, program)
    return program


def _compile(folder: Path, command: list[str]) -> int:
    source = Path(command[-1])
    of_library = "-c" in command and "-o" in command and source.match("verilator/include/verilated*.cpp")
    if not of_library:
        return subprocess.run(command, check=False).returncode
    place = command.index("-o") + 1
    target = Path(command[place])
    same = [*command[:place], *command[place + 1 :], shutil.which(command[0]) or "", source.read_text()]
    kept = folder / f"{hashlib.sha256(chr(0).join(same).encode()).hexdigest()}.o"
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

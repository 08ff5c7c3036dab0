"""Files that are written whole or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from accel.errors import ProgramError


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done for it.

    Raises:
        ProgramError: its folder does not exist, it is a folder itself, or permission is missing.
    """
    if not os.path.isdir(path.parent):
        reason = f"there is no folder {str(path.parent)!r}"
    elif os.path.isdir(path):
        reason = "it is a folder"
    elif not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        reason = "permission is missing"
    else:
        return
    raise unwritable(path, reason)


def unwritable(path: Path, reason: str) -> ProgramError:
    """The error of a file that cannot be written."""
    return ProgramError(f"{str(path)!r} cannot be written: {reason}")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a device or a pipe is written as it is.

    Raises:
        ProgramError: it cannot be written.
    """
    check_writable(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise unwritable(path, str(error.strerror)) from None


def _replace(path: Path, content: bytes) -> None:
    """Write a new file, then put it in the place of the old one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".accel-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

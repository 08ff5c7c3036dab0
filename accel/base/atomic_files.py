"""Files that are written all or nothing, and locks among processes."""

import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from accel.base.errors import ProgramError


def is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written directly."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def check_writable(path: Path) -> None:
    if not os.path.isdir(path.parent):
        reason = f"there is no folder {str(path.parent)!r}"
    elif os.path.isdir(path):
        reason = "it is a folder"
    elif not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        reason = "permission is missing"
    else:
        return
    raise unwritable(path, reason)


def check_distinct(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Refuse to write a file that is also read or written, except for devices. Follows links."""
    taken = [(path, f"is read as {name}") for name, path in inputs.items()]
    for name, path in outputs.items():
        if is_device(path):
            continue
        for other, use in taken:
            if _is_same(path, other):
                raise ProgramError(f"{name} would overwrite {str(path)!r}, which {use}; give another file")
        taken.append((path, f"{name} writes"))


def check_folder(path: Path) -> None:
    """Refuse a path that is not and cannot become a folder."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise unwritable(path, "it is not a folder")
    if not os.path.isdir(path.parent):
        raise unwritable(path, f"there is no folder {str(path.parent)!r}")


def check_targets(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    check_distinct(outputs, inputs)
    for path in outputs.values():
        check_writable(path)


def _is_same(one: Path, other: Path) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def unwritable(path: Path, reason: str) -> ProgramError:
    return ProgramError(f"{str(path)!r} cannot be written: {reason}")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file all or nothing, a device or a pipe directly."""
    check_writable(path)
    try:
        if is_device(path):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise unwritable(path, str(error.strerror)) from None


def write_folder(path: Path, files: Mapping[str, bytes], replaced: Collection[str] = ()) -> None:
    """Write a folder all or nothing. Names may have folders, for example ``a/b.txt``.

    An existing folder may have only ``replaced`` files, which are deleted.
    """
    path = path.resolve()
    check_folder(path)
    for name in sorted(os.listdir(path) if path.exists() else ()):
        if name not in replaced:
            raise unwritable(path, f"the folder holds {name!r} already")
    temporary, old = (path.parent / f".accel-{secrets.token_hex(8)}" for _ in range(2))
    try:
        os.mkdir(temporary)
        for name, content in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).write_bytes(content)
        if path.exists():
            os.rename(path, old)
        os.rename(temporary, path)
    except OSError as error:
        raise unwritable(path, str(error.strerror)) from None
    finally:
        if old.exists() and not path.exists():
            os.rename(old, path)
        for folder in (temporary, old):
            shutil.rmtree(folder, ignore_errors=True)


def _replace(path: Path, content: bytes) -> None:
    """Rename a new file with the old one's mode."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    handle, temporary = _create(path.parent, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _create(folder: Path, mode: int) -> tuple[int, Path]:
    """Let the kernel apply the umask, which cannot be read without changing it."""
    while True:
        path = folder / f".accel-{secrets.token_hex(8)}"
        try:
            return os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode
            ), path
        except FileExistsError:
            continue


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file among processes. It is created if missing, and emptied."""
    import fcntl  # not on every platform

    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Files that are written whole or not at all, never over what is still wanted; locks among processes."""

import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from accel.base.errors import ProgramError


def is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written as it is."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


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


def check_distinct(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Refuse to write over a file that is read, or that is written too; links are seen through.

    Args:
        outputs: files to be written, by the options that ask for them; devices and pipes may be shared.
        inputs: files that are read, by the arguments that name them.

    Raises:
        ProgramError: naming both arguments.
    """
    taken = [(path, f"is read as {name}") for name, path in inputs.items()]
    for name, path in outputs.items():
        if is_device(path):
            continue
        for other, use in taken:
            if _is_same(path, other):
                raise ProgramError(f"{name} would overwrite {str(path)!r}, which {use}; give another file")
        taken.append((path, f"{name} writes"))


def check_folder(path: Path) -> None:
    """Check, before any work, that a path is a folder or that a folder can be made there.

    Raises:
        ProgramError: it is something else, or the folder that it would be in does not exist.
    """
    if os.path.lexists(path) and not os.path.isdir(path):
        raise unwritable(path, "it is not a folder")
    if not os.path.isdir(path.parent):
        raise unwritable(path, f"there is no folder {str(path.parent)!r}")


def check_targets(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Refuse what cannot or must not be written, before any work is done for it.

    Args:
        outputs, inputs: as for :func:`check_distinct`.

    Raises:
        ProgramError: from :func:`check_distinct` or :func:`check_writable`.
    """
    check_distinct(outputs, inputs)
    for path in outputs.values():
        check_writable(path)


def _is_same(one: Path, other: Path) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


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
        if is_device(path):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise unwritable(path, str(error.strerror)) from None


def write_folder(path: Path, files: Mapping[str, bytes], replaced: Collection[str] = ()) -> None:
    """Write a folder whole or not at all.

    Args:
        path: of the folder.
        files: contents by name. A name may have folders, for example ``a/b.txt``.
        replaced: files that may be deleted, if the folder exists.

    Raises:
        ProgramError: it cannot be written, or contains other files.
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
    """Write a new file, then put it in the place of the old one, whose mode it takes over."""
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
    """A new file, open for writing, and its path.

    The kernel takes the umask off the mode: asking for the umask means changing it, for all threads.
    """
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
    """Lock a file among processes.

    Args:
        path: of the file. It is created if missing, and emptied.

    Raises:
        OSError: it cannot be written.
    """
    import fcntl  # noqa: PLC0415  # not on every platform

    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

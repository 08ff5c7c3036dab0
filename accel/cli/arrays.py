"""Arrays in .npy files, as commands take and write them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.base.files import is_device
from accel.cli.common import named_values

_SUFFIX = ".npy"
_FORM = f"NAME=FILE{_SUFFIX}, as A=a{_SUFFIX}"
_NPY_MAGIC = b"\x93NUMPY"
_MAX_ARCHIVE_BYTES = 1 << 33
"""Of the arrays in a .npz file together."""


def input_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """The files of ``--input NAME=FILE.npy`` arguments.

    Args:
        texts: the arguments.
        names: of inputs, where they may hold ``=``.

    Raises:
        AccelError: an argument is not of that form, or a name is given twice.
    """
    return {name: Path(path) for name, path in named_values("--input", texts, _FORM, names).items()}


def output_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """The files of ``--output NAME=FILE.npy`` arguments.

    Args:
        texts: the arguments.
        names: of outputs, where they may hold ``=``.

    Raises:
        AccelError: as :func:`input_files`.
        ProgramError: a file's name is not that of an array; devices have any.
    """
    found = {name: Path(path) for name, path in named_values("--output", texts, _FORM, names).items()}
    for name, path in found.items():
        if path.suffix != _SUFFIX and not is_device(path):
            raise ProgramError(
                f"output {name} is to be written to {str(path)!r}; the name must end in {_SUFFIX}"
            )
    return found


def read_arrays(files: Mapping[str, Path]) -> dict[str, npt.NDArray[Any]]:
    """The arrays in files, as :func:`input_files` gives them.

    Raises:
        ProgramError: one cannot be read.
    """
    return {name: read_array(name, str(path)) for name, path in files.items()}


def read_array(name: str, path: str) -> npt.NDArray[Any]:
    """An array from a .npy file; nothing in it is executed.

    Raises:
        ProgramError: it cannot be read or is no such file.
    """
    return read_npy(f"input {name} from {path!r}", path)


def read_npy(what: str, path: str) -> npt.NDArray[Any]:
    """The same, with ``what`` in place of the input's name in errors.

    Raises:
        ProgramError: it cannot be read or is no such file.
    """
    try:
        with open(path, "rb") as file:
            magic = file.read(len(_NPY_MAGIC))
            if magic != _NPY_MAGIC:
                kind = "an archive" if magic.startswith(b"PK") else "no .npy file"
                raise ProgramError(f"{what} is {kind}; numpy.save writes what is needed")
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise ProgramError(f"{what} cannot be read: {error.strerror or error}") from None
    except ProgramError:
        raise
    except Exception as error:  # numpy fails at damaged headers in too many ways to list
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; an array of numbers is needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None


def array_file(array: npt.NDArray[Any]) -> bytes:
    """The content of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def read_archive(option: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .npz file by name; nothing in it is executed.

    Args:
        option: that names the file.
        path: of the file.

    Raises:
        ProgramError: it cannot be read, is no such file, or holds more than fits.
    """
    what = f"{option} {str(path)!r}"
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > _MAX_ARCHIVE_BYTES:
            raise ProgramError(f"{what} holds {size} bytes; an archive has up to {_MAX_ARCHIVE_BYTES}")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise ProgramError(f"{what} cannot be read: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        raise ProgramError(f"{what} is no .npz file; numpy.savez writes what is needed") from None
    except ProgramError:
        raise
    except Exception as error:  # damaged in too many ways to list
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; arrays of numbers are needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None

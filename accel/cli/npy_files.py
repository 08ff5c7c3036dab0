"""Arrays in .npy and .npz files, as input and output of commands."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.atomic_files import is_device
from accel.base.errors import ProgramError
from accel.cli.shared_options import named_values

_SUFFIX = ".npy"
_FORM = f"NAME=FILE{_SUFFIX}, as A=a{_SUFFIX}"
_NPY_MAGIC = b"\x93NUMPY"
_MAX_ARCHIVE_BYTES = 1 << 33
"""Largest total size of the arrays in a .npz file."""


def input_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of ``--input NAME=FILE.npy`` arguments by name.

    Args:
        texts: the arguments.
        names: valid names, which may contain ``=``.

    Raises:
        AccelError: an argument has another form, or a name appears twice.
    """
    return {name: Path(path) for name, path in named_values("--input", texts, _FORM, names).items()}


def output_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of ``--output NAME=FILE.npy`` arguments by name.

    Args:
        texts: the arguments.
        names: valid names, which may contain ``=``.

    Raises:
        AccelError: as :func:`input_files`.
        ProgramError: a file's name does not end in .npy. Devices may have any name.
    """
    found = {name: Path(path) for name, path in named_values("--output", texts, _FORM, names).items()}
    for name, path in found.items():
        if path.suffix != _SUFFIX and not is_device(path):
            raise ProgramError(
                f"output {name} is to be written to {str(path)!r}; the name must end in {_SUFFIX}"
            )
    return found


def read_arrays(files: Mapping[str, Path]) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of :func:`input_files`.

    Raises:
        ProgramError: a file cannot be read.
    """
    return {name: read_array(name, str(path)) for name, path in files.items()}


def read_array(name: str, path: str) -> npt.NDArray[Any]:
    """Read an array from a .npy file. Nothing in it is executed.

    Raises:
        ProgramError: the file cannot be read or is not a .npy file.
    """
    return read_npy(f"input {name} from {path!r}", path)


def read_npy(what: str, path: str) -> npt.NDArray[Any]:
    """Read an array from a .npy file. Error messages call it ``what``.

    Raises:
        ProgramError: the file cannot be read or is not a .npy file.
    """
    try:
        with open(path, "rb") as file:
            magic = file.read(len(_NPY_MAGIC))
            if magic != _NPY_MAGIC:
                kind = "an archive of arrays" if magic.startswith(b"PK") else "no .npy file"
                raise ProgramError(f"{what} is {kind}; it must be one array, as numpy.save writes it")
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise ProgramError(f"{what} cannot be read: {error.strerror or error}") from None
    except ProgramError:
        raise
    except Exception as error:  # numpy raises many kinds of errors on damaged headers
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; an array of numbers is needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None


def array_file(array: npt.NDArray[Any]) -> bytes:
    """Return an array as the content of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def read_archive(option: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a .npz file by name. Nothing in it is executed.

    Args:
        option: the option that names the file, for error messages.
        path: the file.

    Raises:
        ProgramError: the file cannot be read, is not a .npz file, or is too large.
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
    except Exception as error:  # damaged archives raise many kinds of errors
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; arrays of numbers are needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None

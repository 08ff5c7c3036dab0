"""Arrays in .npy files, as commands take and write them."""

import io
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from accel.errors import ProgramError

_NPY_MAGIC = b"\x93NUMPY"


def assignments(texts: tuple[str, ...]) -> dict[str, str]:
    """``NAME=FILE`` arguments as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not path:
            raise click.UsageError(f"{text!r} is not of the form NAME=FILE.npy")
        if name in found:
            raise click.UsageError(f"{name} is given twice, as {found[name]!r} and as {path!r}")
        found[name] = path
    return found


def read_inputs(texts: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of ``--input NAME=FILE.npy`` arguments.

    Raises:
        ProgramError: one cannot be read.
    """
    return {name: read_array(name, path) for name, path in assignments(texts).items()}


def read_array(name: str, path: str) -> npt.NDArray[Any]:
    """An array from a .npy file; nothing in it is executed.

    Raises:
        ProgramError: it cannot be read or is no such file.
    """
    what = f"input {name} from {path!r}"
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

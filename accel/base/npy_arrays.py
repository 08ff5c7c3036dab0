"""Arrays in .npy files."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError

_NPY_MAGIC = b"\x93NUMPY"


def read_npy(what: str, path: str) -> npt.NDArray[Any]:
    """Read an array from a .npy file, which messages call ``what``.

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
    except Exception as error:  # numpy raises many kinds
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; an array of numbers is needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None

"""Arrays in .npy and .npz files."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.atomic_files import is_device
from accel.base.errors import ProgramError
from accel.base.npy_arrays import read_npy
from accel.cli.shared_options import named_values

_SUFFIX = ".npy"
_FORM = f"NAME=FILE{_SUFFIX}, as A=a{_SUFFIX}"
_MAX_ARCHIVE_BYTES = 1 << 33


def input_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of ``--input NAME=FILE.npy`` by name."""
    return {name: Path(path) for name, path in named_values("--input", texts, _FORM, names).items()}


def output_files(texts: tuple[str, ...], names: Sequence[str] = ()) -> dict[str, Path]:
    """As :func:`input_files`, for ``--output``. Raise a ProgramError for another suffix than .npy, except
    of devices."""
    found = {name: Path(path) for name, path in named_values("--output", texts, _FORM, names).items()}
    for name, path in found.items():
        if path.suffix != _SUFFIX and not is_device(path):
            raise ProgramError(
                f"output {name} is to be written to {str(path)!r}; the name must end in {_SUFFIX}"
            )
    return found


def read_arrays(files: Mapping[str, Path]) -> dict[str, npt.NDArray[Any]]:
    return {name: read_array(name, str(path)) for name, path in files.items()}


def read_array(name: str, path: str) -> npt.NDArray[Any]:
    """Read a .npy file without executing content, or raise a ProgramError."""
    return read_npy(f"input {name} from {path!r}", path)


def array_file(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def read_archive(option: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    """As :func:`read_array`, for a .npz file. A too large one is an error."""
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
    except Exception as error:  # damaged archives raise many kinds
        if "Object arrays" in str(error):
            raise ProgramError(f"{what} holds Python objects; arrays of numbers are needed") from None
        raise ProgramError(f"{what} is damaged: {error}") from None

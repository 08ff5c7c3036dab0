"""Reading the files of models, whatever their format."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accel.base.arguments import check_path
from accel.base.errors import GraphError

MAX_FILE_BYTES = (1 << 31) - 1
"""Of a model's file: protobuf and flat buffers have no larger ones."""

T = TypeVar("T")


def read_model_file(path: str | os.PathLike[str], read: Callable[[bytes, Path], T]) -> T:
    """What a format makes of a file's content.

    Args:
        path: of the model.
        read: takes the content and the folder that the file lies in.

    Raises:
        GraphError: naming the file: there is none, it is too large, or what ``read`` says is wrong with it.
    """
    place = check_path("model", path)
    try:
        size = place.stat().st_size
        if size > MAX_FILE_BYTES:
            raise GraphError(f"{str(place)!r} has {size} bytes; a model has up to {MAX_FILE_BYTES}")
        content = place.read_bytes()
    except OSError as error:
        raise GraphError(f"{str(place)!r} cannot be read: {error.strerror}") from None
    try:
        return read(content, place.parent)
    except GraphError as error:
        raise GraphError(f"{str(place)!r}: {error}") from None

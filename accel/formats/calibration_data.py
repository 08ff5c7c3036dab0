"""Samples for calibration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.base.errors import GraphError, ShapeError, nearest
from accel.base.npy_arrays import read_npy
from accel.base.optional_extras import not_installed
from accel.formats.onnx_file import FileInput
from accel.graph.graph_tensor import Array

PICTURES = (".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp")


def split_samples(inputs: Sequence[FileInput], data: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Return the inputs of each calibration run.

    An array may have an additional first axis, which counts runs. Otherwise its first axis holds the samples
    of all runs. For example, pictures (100, 3, 32, 32) of an input (1, 3, 32, 32) are 100 runs, and so are
    states (100, 2, 1, 128) of an input (2, 1, 128).

    Raises:
        ShapeError: an input lacks samples, or has them in another number, shape or dtype.
    """
    names = [one.name for one in inputs]
    for name in data:
        if name not in names:
            raise ShapeError(f"the data has {name!r}, which is not an input; {nearest(name, names)}")
    if not inputs:
        raise ShapeError("the model has no inputs; calibration needs at least one")
    found: dict[str, list[Array]] = {}
    for one in inputs:
        if one.name not in data:
            raise ShapeError(f"the data lacks input {one.name!r}; every input needs samples")
        found[one.name] = _runs(one, np.asarray(data[one.name]))
    counts = {name: len(parts) for name, parts in found.items()}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise ShapeError(f"the data has samples for {listed} runs; the numbers must be equal")
    return [{name: parts[at] for name, parts in found.items()} for at in range(min(counts.values()))]


def _runs(one: FileInput, values: Array) -> list[Array]:
    sizes = ["?" if not isinstance(size, int) else str(size) for size in one.sizes]
    what = f"the data of input {one.name!r}"
    if values.dtype != one.dtype:
        raise ShapeError(f"{what} is {values.dtype}; the model takes {one.dtype}")
    if values.dtype.kind == "f" and not (np.isfinite(values) | np.isneginf(values)).all():
        raise ShapeError(f"{what} has values that are not finite; only -inf is allowed, as a mask")
    if values.ndim == len(one.sizes) + 1 and values.size and _fits(one.sizes, values.shape[1:]):
        return [np.ascontiguousarray(part).reshape(values.shape[1:]) for part in values]
    if values.ndim != len(one.sizes) or not one.sizes or not _fits(one.sizes[1:], values.shape[1:]):
        wanted = ", ".join(["samples", *sizes[1:]])
        longer = ", ".join(["runs", *sizes])
        raise ShapeError(f"{what} has shape {values.shape}; it must be ({wanted}) or ({longer})")
    batch = one.sizes[0] if isinstance(one.sizes[0], int) else 1
    if not values.size or not batch or len(values) % batch:
        raise ShapeError(f"{what} has {len(values)} samples; they must be a multiple of the batch {batch}")
    return [np.ascontiguousarray(values[at : at + batch]) for at in range(0, len(values), batch)]


def _fits(sizes: Sequence[int | str | None], shape: Sequence[int]) -> bool:
    return len(sizes) == len(shape) and all(
        not isinstance(size, int) or size == given for size, given in zip(sizes, shape, strict=True)
    )


def read_folder(
    folder: Path, inputs: Sequence[FileInput], mean: Sequence[float] = (), std: Sequence[float] = ()
) -> dict[str, Array]:
    """Return the samples of a folder for a model with one input.

    Pictures are resized to the input, divided by 255, and normalized: ``(value - mean) / std``, where
    ``mean`` and ``std`` are one number, or one for each channel.

    Raises:
        ShapeError: the model has several inputs, or one that is no picture.
        GraphError: the folder has no samples, a picture cannot be read, or Pillow is not installed.
        ProgramError: a .npy file cannot be read.
    """
    if len(inputs) != 1:
        names = ", ".join(repr(one.name) for one in inputs)
        raise ShapeError(
            f"the model has the inputs {names}; a folder holds samples of one, so give a .npz file"
        )
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in {*PICTURES, ".npy"})
    if not files:
        raise GraphError(f"folder {str(folder)!r} has no pictures and no .npy files")
    (one,) = inputs
    samples = [
        read_npy(f"sample {str(path)!r}", str(path))
        if path.suffix.lower() == ".npy"
        else _picture(path, one, mean, std)
        for path in files
    ]
    shapes = {sample.shape for sample in samples}
    if len(shapes) > 1:
        raise ShapeError(f"the samples have the shapes {sorted(shapes)}; all must be equal")
    is_batched = samples[0].ndim == len(one.sizes)
    return {one.name: np.concatenate(samples) if is_batched else np.stack(samples)}


def _picture(path: Path, one: FileInput, mean: Sequence[float], std: Sequence[float]) -> Array:
    """Return (1, channels, height, width) or (1, height, width, channels)."""
    try:
        from PIL import Image  # an extra
    except ImportError:
        raise GraphError(not_installed("pictures need Pillow", "plot")) from None
    sizes: list[Any] = list(one.sizes)
    is_first = len(sizes) == 4 and sizes[1] in {1, 3}
    if len(sizes) != 4 or not (is_first or sizes[3] in {1, 3}):
        raise ShapeError(
            f"input {one.name!r} is {one.sizes}; pictures have four axes, one of them 1 or 3 channels"
        )
    channels, height, width = sizes[1:] if is_first else (sizes[3], sizes[1], sizes[2])
    if not isinstance(height, int) or not isinstance(width, int):
        raise ShapeError(f"input {one.name!r} is {one.sizes}; give its height and width by --shape")
    try:
        with Image.open(path) as picture:
            plain = picture.convert("RGB" if channels == 3 else "L").resize((width, height))
    except (OSError, ValueError) as error:
        raise GraphError(f"picture {str(path)!r} cannot be read: {error}") from None
    values = np.asarray(plain, np.float32).reshape(height, width, channels) / 255
    for number, what in ((mean, "mean"), (std, "std")):
        if len(number) not in {0, 1, channels}:
            raise ShapeError(f"{what} has {len(number)} numbers; it must have 1 or {channels}")
    values = (values - np.array(mean or 0, np.float32)) / np.array(std or 1, np.float32)
    ordered = values.transpose(2, 0, 1) if is_first else values
    return ordered[None].astype(np.float32) if one.dtype == "float32" else _as_bytes(plain, one, is_first)


def _as_bytes(plain: Any, one: FileInput, is_first: bool) -> Array:
    values = np.asarray(plain)
    values = values.reshape(*values.shape[:2], -1)
    return np.ascontiguousarray((values.transpose(2, 0, 1) if is_first else values)[None].astype(one.dtype))

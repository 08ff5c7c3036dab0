"""ONNX operators on constants, by which exporters compute shapes and weights."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_file import FileNode, onnx
from accel.graph.graph_tensor import MAX_TENSOR_BYTES, Array

Arrays = Sequence[Array | None]
_Fold = Callable[[FileNode, Arrays], Sequence[Array]]


def fold(node: FileNode, arrays: Arrays) -> Sequence[Array] | None:
    """Return None if the operator is not in :data:`FOLDED`."""
    found = FOLDED.get(node.kind)
    if found is None or node.domain:
        return None
    try:
        return [np.asarray(one) for one in found(node, arrays)]
    except GraphError:
        raise
    except (ValueError, IndexError, TypeError, KeyError, OverflowError, ArithmeticError) as error:
        raise GraphError(f"{node.kind} of constants is not possible: {error}") from None


def slices(
    sizes: Sequence[int], starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> list[tuple[int, int, int]]:
    """Return (start, count, step) of a Slice for each axis of an operand with ``sizes``."""
    starts, ends = integers(starts), integers(ends)
    chosen = (
        list(range(len(starts))) if axes is None else [axis_of(one, len(sizes)) for one in integers(axes)]
    )
    strides = [1] * len(starts) if steps is None else integers(steps)
    if len({len(one) for one in (starts, ends, chosen, strides)}) > 1 or len(starts) > len(sizes):
        raise GraphError(
            f"a slice has the starts {starts}, ends {ends}, axes {chosen} and steps {strides}; the "
            "lists must be equally long and the axes must exist"
        )
    found = [(0, size, 1) for size in sizes]
    for axis, start, end, step in zip(chosen, starts, ends, strides, strict=True):
        if step == 0:
            raise GraphError("the step of a slice is 0; it must not be")
        part = range(*slice(start, _end(end, step, sizes[axis]), step).indices(sizes[axis]))
        found[axis] = (part.start, len(part), step)
    return found


def integers(values: Any) -> list[int]:
    array = np.asarray(values)
    if array.ndim > 1 or (array.dtype.kind not in "iu" and array.size):
        raise GraphError(
            f"a list of integers is {array.dtype.name} of shape {array.shape}; it must have one axis "
            "of integers"
        )
    return [int(one) for one in array.reshape(-1)]


def _end(end: int, step: int, size: int) -> int | None:
    """A descending slice that includes index 0 ends at None in Python."""
    return None if step < 0 and end < -size else end


def axis_of(axis: Any, rank: int) -> int:
    number = int(axis)
    if not -rank <= number < rank:
        raise GraphError(f"an axis is {number}; the tensor has {rank}")
    return number % rank


def reshaped(sizes: Sequence[int], wanted: Any, *, zero_is_zero: bool = False) -> tuple[int, ...]:
    """Resolve 0 and -1 in the shape of a Reshape."""
    shape = integers(wanted)
    if not zero_is_zero:
        for place, size in enumerate(shape):
            if size == 0:
                if place >= len(sizes):
                    raise GraphError(f"a reshape to {shape} copies axis {place}; {tuple(sizes)} has none")
                shape[place] = sizes[place]
    total = math.prod(sizes)
    if shape.count(-1) == 1:
        rest = math.prod(size for size in shape if size != -1)
        if rest and total % rest == 0:
            shape[shape.index(-1)] = total // rest
    if any(size < 0 for size in shape) or math.prod(shape) != total:
        raise GraphError(
            f"{tuple(sizes)} cannot become {tuple(shape)}, which has another number of values; the file "
            "may fix a batch size"
        )
    return tuple(shape)


def squeezed(sizes: Sequence[int], axes: Any = None) -> tuple[int, ...]:
    gone = {place for place, size in enumerate(sizes) if size == 1}
    if axes is not None:
        chosen = {axis_of(axis, len(sizes)) for axis in integers(axes)}
        if not chosen <= gone:
            raise GraphError(
                f"a squeeze removes axes {sorted(chosen)} of {tuple(sizes)}; their size must be 1"
            )
        gone = chosen
    return tuple(size for place, size in enumerate(sizes) if place not in gone)


def unsqueezed(sizes: Sequence[int], axes: Any) -> tuple[int, ...]:
    new = integers(axes)
    rank = len(sizes) + len(new)
    places = {axis_of(axis, rank) for axis in new}
    if len(places) != len(new):
        raise GraphError(f"new axes are {new}; they must differ")
    rest = iter(sizes)
    return tuple(1 if place in places else next(rest) for place in range(rank))


def _bounded(shape: Sequence[int], itemsize: int = 8) -> tuple[int, ...]:
    sizes = tuple(int(one) for one in shape)
    if any(size < 0 for size in sizes) or math.prod(sizes) * itemsize > MAX_TENSOR_BYTES:
        raise GraphError(f"a constant would have the shape {sizes}; it may take {MAX_TENSOR_BYTES} bytes")
    return sizes


def _axes(node: FileNode, arrays: Arrays) -> Any:
    if len(arrays) > 1:
        return arrays[1]
    return node.attributes.get("axes")


def _elementwise(function: Callable[..., Any]) -> _Fold:
    def folded(node: FileNode, arrays: Arrays) -> Sequence[Array]:
        operands = [np.asarray(one) for one in arrays]
        _bounded(np.broadcast_shapes(*[one.shape for one in operands]))
        with np.errstate(all="ignore"):
            result = np.asarray(function(*operands))
        boolean = result.dtype == np.bool_
        return [result if boolean else result.astype(operands[-1].dtype)]

    return folded


def _divide(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    if not np.all(b):
        raise GraphError("a constant is divided by zero")
    return (np.abs(a) // np.abs(b)) * np.sign(a) * np.sign(b)


def _constant(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    kinds = {
        "value": None,
        "value_float": "float32",
        "value_floats": "float32",
        "value_int": "int64",
        "value_ints": "int64",
    }
    for name, dtype in kinds.items():
        if node.attributes.get(name) is not None:
            return [np.asarray(node.attributes[name], dtype=dtype)]
    raise GraphError("a constant must be numbers")


def _cast(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    dtype = onnx().helper.tensor_dtype_to_np_dtype(node.attributes["to"])
    with np.errstate(all="ignore"):
        return [np.asarray(arrays[0]).astype(dtype)]


def _gather(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    data, indices = np.asarray(arrays[0]), np.asarray(arrays[1])
    axis = axis_of(node.attributes.get("axis", 0), data.ndim)
    _bounded((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    return [np.take(data, indices, axis=axis)]


def _slice(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    data = np.asarray(arrays[0])
    for axis, (start, count, step) in enumerate(slices(data.shape, *arrays[1:])):
        data = data.take(range(start, start + count * step, step), axis=axis)
    return [data]


def _filled(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    value = np.asarray(node.attributes.get("value", np.zeros(1, np.float32)))
    return [np.full(_bounded(integers(arrays[0])), value.reshape(-1)[0])]


def _range(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    start, limit, delta = (np.asarray(one) for one in arrays)
    _bounded((max(0, math.ceil((limit.item() - start.item()) / delta.item())),))
    return [np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)]


def _expand(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    data = np.asarray(arrays[0])
    shape = _bounded(np.broadcast_shapes(data.shape, tuple(integers(arrays[1]))))
    return [np.broadcast_to(data, shape)]


def _concat(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    parts = [np.asarray(one) for one in arrays]
    return [np.concatenate(parts, axis=axis_of(node.attributes["axis"], parts[0].ndim))]


def _product(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    data, axes = np.asarray(arrays[0]), _axes(node, arrays)
    chosen = None if axes is None else tuple(axis_of(axis, data.ndim) for axis in integers(axes))
    return [np.prod(data, axis=chosen, keepdims=bool(node.attributes.get("keepdims", 1)), dtype=data.dtype)]


def _transposed(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    return [np.transpose(np.asarray(arrays[0]), node.attributes.get("perm"))]


def _flattened(node: FileNode, arrays: Arrays) -> Sequence[Array]:
    data = np.asarray(arrays[0])
    axis = int(node.attributes.get("axis", 1)) % (data.ndim + 1)
    return [data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))]


FOLDED: Mapping[str, _Fold] = {
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "Div": _elementwise(_divide),
    "Equal": _elementwise(np.equal),
    "Expand": _expand,
    "Flatten": _flattened,
    "Gather": _gather,
    "Greater": _elementwise(np.greater),
    "Identity": lambda node, arrays: [np.asarray(arrays[0])],
    "Less": _elementwise(np.less),
    "Max": _elementwise(lambda *all_of: np.max(np.broadcast_arrays(*all_of), axis=0)),
    "Min": _elementwise(lambda *all_of: np.min(np.broadcast_arrays(*all_of), axis=0)),
    "Mod": _elementwise(np.mod),
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": lambda node, arrays: [
        np.asarray(arrays[0]).reshape(
            reshaped(
                np.asarray(arrays[0]).shape, arrays[1], zero_is_zero=bool(node.attributes.get("allowzero", 0))
            )
        )
    ],
    "Size": lambda node, arrays: [np.asarray(np.asarray(arrays[0]).size, dtype=np.int64)],
    "Slice": _slice,
    "Sqrt": _elementwise(np.sqrt),
    "Squeeze": lambda node, arrays: [
        np.asarray(arrays[0]).reshape(squeezed(np.asarray(arrays[0]).shape, _axes(node, arrays)))
    ],
    "Sub": _elementwise(np.subtract),
    "Transpose": _transposed,
    "Unsqueeze": lambda node, arrays: [
        np.asarray(arrays[0]).reshape(unsqueezed(np.asarray(arrays[0]).shape, _axes(node, arrays)))
    ],
    "Where": _elementwise(np.where),
}

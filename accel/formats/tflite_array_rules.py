"""Rules of TensorFlow Lite for operators that look up, sort, count or rearrange values."""

from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import axis_of, integers
from accel.formats.onnx_file import onnx
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import Steps, emit_nodes, emit_numbers
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, check_shape
from accel.graph.movement_operators import Identity, Pad, Reshape, Slice, Transpose

_SUM = "add"
"""ScatterND adds where indices repeat."""


@rule(2, "REVERSE_V2")
def _reverse(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    axes = {axis_of(axis, len(sizes)) for axis in integers(importer.constant(operator.inputs[1]))}
    starts = tuple(size - 1 if axis in axes else 0 for axis, size in enumerate(sizes))
    steps = tuple(-1 if axis in axes else 1 for axis in range(len(sizes)))
    importer.emit(operator, Slice(starts=starts, sizes=sizes, steps=steps), [name])


def _block(importer: TfliteImporter, operator: FileOperator, sizes: Shape) -> tuple[Shape, Array]:
    """Return the sizes of blocks, and the pads or crops (block axes, 2)."""
    block = tuple(integers(importer.constant(operator.inputs[1])))
    around = importer.constant(operator.inputs[2])
    if len(block) >= len(sizes) or around.shape != (len(block), 2) or min(block, default=1) < 1:
        raise GraphError(
            f"its data is {sizes}, its blocks are {block} and its pads {around.shape}; blocks must be "
            "positive, with two pads each"
        )
    return block, around


@rule(3, "SPACE_TO_BATCH_ND")
def _space_to_batch(importer: TfliteImporter, operator: FileOperator) -> None:
    """Pad, and put pixels with the same place in their blocks into one picture."""
    name, sizes = importer.operand(operator.inputs[0])
    block, pads = _block(importer, operator, sizes)
    emit, fresh = importer.builder.emit, importer.builder.fresh
    rest = sizes[1 + len(block) :]
    if pads.any():
        quantization = importer.builder.tensors[name].quantization
        value = 0.0 if quantization is None else float(quantization.zero[0])
        begin, end = ((0, *map(int, pads[:, side]), *(0 for _ in rest)) for side in (0, 1))
        name = emit(Pad(begin=begin, end=end, value=value), [name], fresh(f"{name}/padded"))
    padded = importer.builder.tensors[name].shape[1 : 1 + len(block)]
    if any(size % n for size, n in zip(padded, block, strict=True)):
        raise GraphError(f"its padded sizes {padded} are no multiples of its blocks {block}")
    counts = [size // n for size, n in zip(padded, block, strict=True)]
    split = (sizes[0], *(one for pair in zip(counts, block, strict=True) for one in pair), *rest)
    last = 1 + 2 * len(block)
    order = (*range(2, last, 2), 0, *range(1, last, 2), *range(last, len(split)))
    parts = emit(Reshape(sizes=split), [name], fresh(f"{name}/blocks"))
    turned = emit(Transpose(permutation=order), [parts], fresh(f"{name}/turned"))
    importer.emit(operator, Reshape(sizes=(sizes[0] * int(np.prod(block)), *counts, *rest)), [turned])


@rule(3, "BATCH_TO_SPACE_ND")
def _batch_to_space(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    block, crops = _block(importer, operator, sizes)
    if sizes[0] % int(np.prod(block)):
        raise GraphError(f"its batch is {sizes[0]}, which is no multiple of its blocks {block}")
    emit, fresh = importer.builder.emit, importer.builder.fresh
    count, batch = len(block), sizes[0] // int(np.prod(block))
    inner, rest = sizes[1 : 1 + count], sizes[1 + count :]
    order = (count, *(axis for n in range(count) for axis in (count + 1 + n, n)))
    order += tuple(range(2 * count + 1, 2 * count + 1 + len(rest)))
    whole = (batch, *(size * n for size, n in zip(inner, block, strict=True)), *rest)
    parts = emit(Reshape(sizes=(*block, batch, *inner, *rest)), [name], fresh(f"{name}/blocks"))
    turned = emit(Transpose(permutation=order), [parts], fresh(f"{name}/turned"))
    if not crops.any():
        importer.emit(operator, Reshape(sizes=whole), [turned])
        return
    joined = emit(Reshape(sizes=whole), [turned], fresh(f"{name}/joined"))
    starts = (0, *map(int, crops[:, 0]), *(0 for _ in rest))
    ends = (0, *map(int, crops[:, 1]), *(0 for _ in rest))
    cropped = tuple(size - a - b for size, a, b in zip(whole, starts, ends, strict=True))
    importer.emit(operator, Slice(starts=starts, sizes=cropped, steps=(1,) * len(whole)), [joined])


@rule(2, "CUMSUM")
def _cumulative_sum(importer: TfliteImporter, operator: FileOperator) -> None:
    axis = np.array(integers(importer.constant(operator.inputs[1]))[0], np.int64)
    flags = {key: int(bool(operator.options[key])) for key in ("exclusive", "reverse")}
    steps: Steps = [("CumSum", ["x0", "axis"], flags)]
    emit_numbers(importer, operator, steps, operator.inputs[:1], {"axis": axis})


@rule(2, "REDUCE_ALL", "REDUCE_ANY")
def _reduce_bool(importer: TfliteImporter, operator: FileOperator) -> None:
    axes = np.array(integers(importer.constant(operator.inputs[1])), np.int64)
    kind = "ReduceMin" if operator.kind == "REDUCE_ALL" else "ReduceMax"
    types = onnx().TensorProto
    steps: Steps = [
        ("Cast", ["x0"], {"to": types.INT32}),
        (kind, ["t0", "axes"], {"keepdims": int(bool(operator.options["keep"]))}),
        ("Cast", ["t1"], {"to": types.BOOL}),
    ]
    emit_numbers(importer, operator, steps, operator.inputs[:1], {"axes": axes})


@rule(1, "ADD_N")
def _sum_of_several(importer: TfliteImporter, operator: FileOperator) -> None:
    count = len(operator.inputs)
    steps: Steps = [("Identity", ["x0"], {})]
    if count > 1:
        steps = [("Add", [f"t{n - 1}" if n else "x0", f"x{n + 1}"], {}) for n in range(count - 1)]
    emit_numbers(importer, operator, steps, operator.inputs)


@rule(2, "GATHER_ND")
def _gather_nd(importer: TfliteImporter, operator: FileOperator) -> None:
    types = onnx().TensorProto
    steps: Steps = [("Cast", ["x1"], {"to": types.INT64}), ("GatherND", ["x0", "t0"], {})]
    emit_numbers(importer, operator, steps, operator.inputs[:2], is_move=True)


@rule(3, "SCATTER_ND")
def _scatter_nd(importer: TfliteImporter, operator: FileOperator) -> None:
    """Add values at indices to zeros. Of quantized tensors the integers are added."""
    sizes = tuple(integers(importer.constant(operator.inputs[2])))
    dtype = importer.file.tensors[operator.inputs[1]].dtype
    check_shape(importer.file.tensors[operator.outputs[0]].name, sizes, dtype)
    wide, types = np.dtype("int32" if dtype in QUANTIZED else dtype), onnx().helper.np_dtype_to_tensor_dtype
    steps: Steps = [
        ("Cast", ["x0"], {"to": onnx().TensorProto.INT64}),
        ("Cast", ["x1"], {"to": types(wide)}),
        ("ScatterND", ["zeros", "t0", "t1"], {"reduction": _SUM}),
        ("Cast", ["t2"], {"to": types(np.dtype(dtype))}),
    ]
    zeros = {"zeros": np.zeros(sizes, wide)}
    emit_numbers(importer, operator, steps, operator.inputs[:2], zeros, is_move=True)


@rule(2, "EMBEDDING_LOOKUP")
def _embedding(importer: TfliteImporter, operator: FileOperator) -> None:
    ids, table = operator.inputs[:2]
    is_move = importer.file.tensors[operator.outputs[0]].dtype != "float32"
    emit_numbers(importer, operator, [("Gather", ["x1", "x0"], {"axis": 0})], [ids, table], is_move=is_move)


@rule(4, "ONE_HOT")
def _one_hot(importer: TfliteImporter, operator: FileOperator) -> None:
    """An index beyond the depth makes no place hot."""
    (depth,) = integers(importer.constant(operator.inputs[1]))
    _, sizes = importer.operand(operator.inputs[0])
    rank = len(sizes) + 1
    axis = axis_of(operator.options["axis"], rank)
    places = np.arange(depth, dtype=importer.file.tensors[operator.inputs[0]].dtype)
    shaped = places.reshape([-1 if n == axis else 1 for n in range(rank)])
    steps: Steps = [
        ("Unsqueeze", ["x0", "axis"], {}),
        ("Equal", ["t0", "places"], {}),
        ("Where", ["t1", "x1", "x2"], {}),
    ]
    constants = {"axis": np.array([axis], np.int64), "places": shaped}
    emit_numbers(importer, operator, steps, [operator.inputs[0], *operator.inputs[2:4]], constants)


@rule(2, "TOPK_V2")
def _largest(importer: TfliteImporter, operator: FileOperator) -> None:
    if len(operator.outputs) != 2:
        raise GraphError(f"it has {len(operator.outputs)} outputs; it must have 2")
    name, _ = importer.operand(operator.inputs[0])
    count = np.array(integers(importer.constant(operator.inputs[1])), np.int64)
    make, source = onnx().helper.make_node, importer.file.tensors[operator.inputs[0]]
    for place, title in zip(operator.outputs, ("values", "indices"), strict=True):
        tensor = importer.file.tensors[place]
        found = make("TopK", ["x0", "count"], ["values", "indices"], axis=-1)
        wanted = onnx().helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        nodes = [found, make("Cast", [title], ["y"], to=wanted)]
        quantization = importer.quantization(source)
        label = f"{tensor.name}/largest"
        result = emit_nodes(importer, "TopK", nodes, [name], {"count": count}, label, quantization)
        importer.emit_output(place, Identity(), [result])


@rule(2, "MIRROR_PAD")
def _mirror_pad(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    pads = importer.constant(operator.inputs[1])
    if pads.shape != (len(sizes), 2):
        raise GraphError(f"its pads are {pads.shape}; they must be two for each of {len(sizes)} axes")
    if not operator.options["mode"]:
        begin, end = (tuple(int(one) for one in pads[:, side]) for side in (0, 1))
        importer.emit(operator, Pad(begin=begin, end=end, mode="reflect"), [name])
        return
    if (pads < 0).any() or (pads.max(axis=1) > np.array(sizes)).any():
        raise GraphError(f"its pads are {pads.tolist()}; they must be from 0 to the sizes {sizes}")
    steps: list[tuple[str, list[str], dict[str, Any]]] = []
    constants: dict[str, Array] = {}
    for axis in np.flatnonzero(pads.any(axis=1)).tolist():
        source = f"t{len(steps) - 1}" if steps else "x0"
        steps.append(("Gather", [source, f"places{axis}"], {"axis": axis}))
        constants[f"places{axis}"] = np.pad(np.arange(sizes[axis], dtype=np.int64), pads[axis], "symmetric")
    steps = steps or [("Identity", ["x0"], {})]
    emit_numbers(importer, operator, steps, operator.inputs[:1], constants, is_move=True)

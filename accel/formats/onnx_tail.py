"""The end of an ONNX model, whose shapes depend on values, as :class:`~accel.graph.graph_tail.Tail`."""

from collections.abc import Sequence

from accel.base.errors import GraphError
from accel.formats.onnx_exporter import OPSET
from accel.formats.onnx_file import FileNode, onnx
from accel.formats.onnx_foreign import encoded, node_proto, to_initializer
from accel.formats.onnx_importer import Importer
from accel.graph.foreign_operator import open_session
from accel.graph.graph_tail import Tail

_OPEN = {"NonZero", "NonMaxSuppression", "Unique", "Compress", "Range"}
"""Their shapes depend on values."""
_SHAPE_INPUTS = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "OneHot": (1,),
    "Pad": (1,),
    "Reshape": (1,),
    "Resize": (2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Inputs whose values determine the shape."""


def has_open_shape(importer: Importer, node: FileNode) -> bool:
    """Whether only a run knows a result's shape."""
    if node.domain or all(importer.array(name) is not None for name in node.reads):
        return False
    places = (1,) if node.kind.startswith("Reduce") else _SHAPE_INPUTS.get(node.kind, ())
    deciding = [node.inputs[at] for at in places if at < len(node.inputs)]
    return node.kind in _OPEN or any(name and importer.array(name) is None for name in deciding)


def tail_of(importer: Importer, nodes: Sequence[FileNode]) -> tuple[Tail, list[str]]:
    """Return the nodes' tail, and the outputs that its graph needs."""
    made = {name for node in nodes for name in node.outputs if name}
    read = dict.fromkeys(name for node in nodes for name in node.reads if name not in made)
    varying = {name: importer.operand(name) for name in read if importer.array(name) is None}
    constants = [to_initializer(array, name) for name in read if (array := importer.array(name)) is not None]
    tensors = {held: importer.builder.tensors[held] for held in varying.values()}
    wanted = [name for name in importer.file.outputs if name in made]
    opsets = {node.domain: node.opset for node in nodes}
    renamed = dict.fromkeys(
        name for node in nodes for name in node.captured if varying.get(name, name) != name
    )
    make = onnx().helper.make_node
    model = encoded(
        [
            *(make("Identity", [varying[name]], [name]) for name in renamed),
            *(node_proto(node, varying) for node in nodes),
        ],
        constants,
        {name: (one.dtype, one.shape) for name, one in tensors.items()},
        wanted,
        {"": OPSET} | opsets,
    )
    open_session(model)
    if not tensors:
        raise GraphError("all of the model's shapes depend on values; there is nothing to compile")
    kinds = tuple(dict.fromkeys(node.title for node in nodes))
    tail = Tail(kinds=kinds, model=model, inputs=tuple(tensors), outputs=importer.file.outputs)
    needed = [name for name in importer.file.outputs if name not in made]
    needed += [name for name in tensors if name not in importer.builder.inputs and name not in needed]
    return tail, needed

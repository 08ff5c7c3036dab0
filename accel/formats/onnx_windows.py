"""Windows of convolutions and pools, with auto_pad and ceil_mode resolved."""

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_file import FileNode
from accel.graph.graph_tensor import Shape
from accel.graph.window_geometry import Windows


def windows_of(node: FileNode, sizes: Shape, kernel: Shape, *, ceiling: bool = False) -> Windows:
    """``ceiling`` is ceil_mode."""
    rank = len(kernel)
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    pads = list(node.attributes.get("pads") or [0] * 2 * rank)
    if len(sizes) != rank or len(pads) != 2 * rank:
        raise GraphError(
            f"its kernel is {kernel} and its pads are {pads}; the tensor has {len(sizes)} spatial axes"
        )
    begin, end = tuple(pads[:rank]), tuple(pads[rank:])
    found = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=begin, end=end)
    auto = node.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    if auto == "VALID":
        found = found.with_padding([0] * rank)
    elif auto in {"SAME_UPPER", "SAME_LOWER"}:
        found = found.with_padding(found.same_padding(sizes), more_at_end=auto == "SAME_UPPER")
    elif auto != "NOTSET":
        raise GraphError(f"its auto_pad is {auto!r}; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    return _rounded_up(found, sizes) if ceiling else found


def _rounded_up(windows: Windows, sizes: Shape) -> Windows:
    """Add padding for a last window that reaches beyond the end."""
    ends = []
    for n, s, extent, begin, end in zip(
        sizes, windows.strides, windows.extents, windows.begin, windows.end, strict=True
    ):
        count = -(-(n + begin + end - extent) // s) + 1
        if (count - 1) * s >= n + begin:  # a window must not begin after the last value
            count -= 1
        ends.append(max(end, (count - 1) * s + extent - n - begin))
    return replace(windows, end=tuple(ends))


def transposed_windows_of(node: FileNode, sizes: Shape, kernel: Shape) -> tuple[Windows | None, Shape]:
    """Return a ConvTranspose's windows, or None if an ``output_shape`` needs negative pads, and the values
    added at the end of the result.
    """
    rank = len(kernel)
    attributes = node.attributes
    strides, dilations = (tuple(attributes.get(key) or [1] * rank) for key in ("strides", "dilations"))
    added = tuple(attributes.get("output_padding") or [0] * rank)
    pads = list(attributes.get("pads") or [0] * 2 * rank)
    if any(len(one) != rank for one in (sizes, strides, dilations, added)) or len(pads) != 2 * rank:
        raise GraphError(f"its kernel is {kernel} and its pads are {pads}; the data has {len(sizes)} axes")
    declared = list(attributes.get("output_shape") or [])
    if len(declared) not in {0, rank, rank + 2}:  # some exporters add batch and channels
        raise GraphError(f"its output_shape is {declared}; it must have one size for each of {rank} axes")
    wanted = declared[-rank:]
    auto = attributes.get("auto_pad", "NOTSET") or "NOTSET"
    plain = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=(0,) * rank, end=(0,) * rank)
    if auto == "VALID":
        pads = [0] * 2 * rank
    elif auto != "NOTSET" and not wanted:
        wanted = [n * stride for n, stride in zip(sizes, strides, strict=True)]
    if wanted:
        whole = plain.transposed_sizes(sizes)
        cut = [n + more - size for n, more, size in zip(whole, added, wanted, strict=True)]
        is_valid = min(cut) >= 0
        return plain.with_padding(cut, more_at_end=auto == "SAME_UPPER") if is_valid else None, added
    if min(pads) < 0:
        return None, added
    return replace(plain, begin=tuple(pads[:rank]), end=tuple(pads[rank:])), added

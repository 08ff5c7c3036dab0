"""Windows of convolutions and pools: attributes of a node, with auto_pad and ceil_mode resolved."""

from accel.base.errors import GraphError
from accel.formats.onnx_file import FileNode
from accel.graph.graph_tensor import Shape
from accel.graph.window_geometry import Windows


def windows_of(node: FileNode, sizes: Shape, kernel: Shape, *, ceiling: bool = False) -> Windows:
    """Return the windows of a convolution or a pool.

    Args:
        kernel: the window's size along each of them.
        ceiling: whether the last window may reach beyond the padding (ceil_mode).
    """
    rank = len(kernel)
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    pads = list(node.attributes.get("pads") or [0] * 2 * rank)
    if len(sizes) != rank or len(pads) != 2 * rank:
        raise GraphError(
            f"its kernel is {kernel} and its pads are {pads}; the tensor has {len(sizes)} spatial axes"
        )
    begin, end = pads[:rank], pads[rank:]
    found = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=tuple(begin), end=tuple(end))
    auto = node.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    if auto == "VALID":
        begin, end = [0] * rank, [0] * rank
    elif auto in {"SAME_UPPER", "SAME_LOWER"}:
        needs = [
            max(0, (-(-n // s) - 1) * s + extent - n)
            for n, s, extent in zip(sizes, strides, found.extents, strict=True)
        ]
        less, more = [need // 2 for need in needs], [need - need // 2 for need in needs]
        begin, end = (less, more) if auto == "SAME_UPPER" else (more, less)
    elif auto != "NOTSET":
        raise GraphError(f"its auto_pad is {auto!r}; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if ceiling:
        for axis, (n, s, extent) in enumerate(zip(sizes, strides, found.extents, strict=True)):
            count = -(-(n + begin[axis] + end[axis] - extent) // s) + 1
            if (count - 1) * s >= n + begin[axis]:  # windows must not begin after the last value
                count -= 1
            end[axis] = max(end[axis], (count - 1) * s + extent - n - begin[axis])
    return Windows(kernel=kernel, strides=strides, dilations=dilations, begin=tuple(begin), end=tuple(end))


def transposed_windows_of(node: FileNode, sizes: Shape, kernel: Shape) -> tuple[Windows | None, Shape]:
    """Return the windows of a ConvTranspose, and the values that it adds at the end of the result.

    Returns:
        None instead of windows with negative pads, which nodes with an ``output_shape`` can have.
    """
    rank = len(kernel)
    attributes = node.attributes
    strides, dilations = (tuple(attributes.get(key) or [1] * rank) for key in ("strides", "dilations"))
    added = tuple(attributes.get("output_padding") or [0] * rank)
    pads = list(attributes.get("pads") or [0] * 2 * rank)
    if any(len(one) != rank for one in (sizes, strides, dilations, added)) or len(pads) != 2 * rank:
        raise GraphError(f"its kernel is {kernel} and its pads are {pads}; the data has {len(sizes)} axes")
    wanted = list(attributes.get("output_shape") or [])[-rank:]
    auto = attributes.get("auto_pad", "NOTSET") or "NOTSET"
    begin, end = pads[:rank], pads[rank:]
    if auto == "VALID":
        begin, end = [0] * rank, [0] * rank
    elif auto != "NOTSET" and not wanted:
        wanted = [n * stride for n, stride in zip(sizes, strides, strict=True)]
    if wanted:
        whole = [
            (n - 1) * s + (k - 1) * d + 1 + more
            for n, s, k, d, more in zip(sizes, strides, kernel, dilations, added, strict=True)
        ]
        cut = [n - size for n, size in zip(whole, wanted, strict=True)]
        less, more = [n // 2 for n in cut], [n - n // 2 for n in cut]
        begin, end = (less, more) if auto == "SAME_UPPER" else (more, less)
    if min(*begin, *end) < 0:
        return None, added
    return (
        Windows(kernel=kernel, strides=strides, dilations=dilations, begin=tuple(begin), end=tuple(end)),
        added,
    )

"""Which elements tensors and buffers are made of, as the intrinsics that touch them want it."""

from collections.abc import Iterator, Mapping

from accel.base.errors import TensorizeError
from accel.compiler.nest.nest import (
    Buffer,
    Call,
    Copy,
    Finish,
    Identity,
    Nest,
    Parameters,
    Region,
    Store,
    Widen,
    walk_nodes,
)
from accel.compiler.nest.text import format_region
from accel.compiler.target.finish import passes

Element = tuple[tuple[int | None, int], ...]
"""For each dimension of a hardware element: the buffer's dimension and the size along it, or None."""


def buffer_elements(nest: Nest) -> dict[Buffer, Element]:
    """The element of every buffer that the program writes.

    Raises:
        TensorizeError: two uses of a buffer disagree, or nothing but copies uses it.
    """
    found: dict[Buffer, tuple[Element, str]] = {}

    def settle(region: Region, element: Element, user: str) -> None:
        known = found.setdefault(region.buffer, (element, user))
        if known[0] != element:
            raise TensorizeError(
                f"{format_region(region)} is used by {user} with elements {_words(region.buffer, element)}, "
                f"and by {known[1]} with elements {_words(region.buffer, known[0])}; "
                f"one buffer has one layout: cache the tensor twice"
            )

    for node in walk_nodes(nest.body):
        if isinstance(node, Call):
            tensors = [node.intrin.op.tensor, *node.intrin.inputs]
            operands = [node.output, *node.inputs]
            for region, tensor, dims in zip(operands, tensors, node.dims, strict=False):
                settle(region, element_of(region, dims, tensor.shape), node.intrin.form_name(node.form))
        elif isinstance(node, Finish):
            scope = node.target.buffer.scope
            assert scope is not None
            for one in node.ops:
                for name in (step.op for step in passes(one.op)):
                    settle(node.target, tuple(zip(node.dims, scope.element, strict=True)), name)
                    if one.operand is not None:
                        settle(one.operand, _read_element(one.operand, one.dims, scope.element), name)
                    if one.unit is not None:
                        settle(one.unit, _read_element(one.unit, (0, 1), scope.element), name)
    for node in walk_nodes(nest.body):
        if isinstance(node, Store):
            for region, element in _finished_elements(node, found):
                settle(region, element, "STORE")
        elif isinstance(node, Copy) and node.target.buffer.scope is None and node.source.buffer in found:
            settle(node.target, found[node.source.buffer][0], "STORE")
    _check_rereads(nest, {buffer: element for buffer, (element, _) in found.items()})
    hosts = {node.target for node in nest.body if isinstance(node, Widen | Identity | Parameters)}
    for buffer in nest.locals:
        if buffer in hosts:
            continue
        if buffer not in found:
            raise TensorizeError(f"{buffer.name} is only copied; no intrinsic says what its elements are")
        _check_scope(buffer, found[buffer][0])
    return {buffer: element for buffer, (element, _) in found.items()}


def _read_element(region: Region, dims: tuple[int | None, ...], otherwise: tuple[int, int]) -> Element:
    """The element of what is read besides accumulators."""
    sizes = otherwise if region.buffer.scope is None else region.buffer.scope.element
    return tuple(zip(dims, sizes, strict=True))


def element_of(region: Region, dims: tuple[int | None, ...], shape: tuple[int, ...]) -> Element:
    """The element behind an intrinsic's operand; its last dimensions, if that is several elements."""
    rank = len(shape) if region.buffer.scope is None else len(region.buffer.scope.element)
    return tuple(zip(dims, shape, strict=True))[-rank:]


def _finished_elements(
    node: Store, found: Mapping[Buffer, tuple[Element, str]]
) -> Iterator[tuple[Region, Element]]:
    """The elements of all that the store unit brings together: results and residuals are as the
    accumulators, and parameters are of as many channels.

    Raises:
        TensorizeError: the channels are not the columns of the accumulators.
    """
    name = node.source.buffer.name
    if node.source.buffer not in found:
        raise TensorizeError(f"{name} is only finished; no intrinsic says what its elements are")
    element = found[node.source.buffer][0]
    yield node.target, element
    for one in node.ops:
        assert one.operand is not None
        if one.operand.buffer.scope is None:
            yield one.operand, element
            continue
        columns, width = element[1]
        if columns != one.dims[0]:
            raise TensorizeError(
                f"{name} has elements {_words(node.source.buffer, element)}; the store unit has "
                f"parameters for their columns; {one.operand.buffer.name} is of dim {one.dims[0]}"
            )
        yield one.operand, ((0, width), (1, 2))


def _check_rereads(nest: Nest, elements: dict[Buffer, Element]) -> None:
    """What is loaded from DRAM that was stored there is there whole, and in the same elements."""
    for node in walk_nodes(nest.body):
        if not isinstance(node, Copy) or node.source.buffer.scope is not None:
            continue
        stored, loaded = node.source.buffer, node.target.buffer
        if stored not in elements or loaded not in elements:
            continue
        if elements[stored] != elements[loaded]:
            raise TensorizeError(
                f"{stored.name} is stored in elements {_words(stored, elements[stored])} and loaded into "
                f"{loaded.name} in elements {_words(stored, elements[loaded])}; "
                f"a tensor that the program writes has one layout"
            )
        if nest.around.get(stored):
            raise TensorizeError(
                f"{stored.name} is computed inside a loop and kept in DRAM; compute it outside of all loops, "
                f"or give it a scope"
            )


def _check_scope(buffer: Buffer, element: Element) -> None:
    if buffer.scope is None:
        return
    sizes = tuple(size for _, size in element)
    expected = buffer.scope.element
    if sizes != expected:
        raise TensorizeError(
            f"{buffer.name} has elements of {sizes}; those of {buffer.scope} are {expected} "
            f"in configuration {buffer.scope.config.name!r}"
        )


def widths(element: Element, dimensions: int) -> tuple[int, ...]:
    """The block's size along each dimension of a buffer."""
    sizes = {d: size for d, size in element if d is not None}
    return tuple(sizes.get(d, 1) for d in range(dimensions))


def _words(buffer: Buffer, element: Element) -> str:
    names = ["-" if d is None else f"dim {d}" for d, _ in element]
    return "[" + ", ".join(f"{name}: {size}" for name, (_, size) in zip(names, element, strict=True)) + "]"

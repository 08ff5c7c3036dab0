"""The hardware elements of buffers, by the intrinsics that access them."""

from collections.abc import Iterator, Mapping

from accel.base.errors import TensorizeError
from accel.compiler.expr.epilogue_operators import StoreLookUp
from accel.compiler.nest.nest import (
    BlockEpilogue,
    Buffer,
    Call,
    Copy,
    HostConstant,
    HostPack,
    Nest,
    Region,
    StoreEpilogue,
    walk_nodes,
)
from accel.compiler.nest.nest_text import format_region
from accel.compiler.target.alu_epilogue import passes
from accel.core.scratchpad_specs import TABLE_BYTES

Element = tuple[tuple[int | None, int], ...]
"""For each dimension of a hardware element: the buffer's dimension (or None) and the size."""


def buffer_elements(nest: Nest) -> dict[Buffer, Element]:
    """Return the element of each written buffer.

    For example, the accumulators of a 1 x 16 block have the element ``((0, 1), (1, 16))``.
    """
    found: dict[Buffer, tuple[Element, str]] = {}

    def set_element(region: Region, element: Element, user: str) -> None:
        known = found.setdefault(region.buffer, (element, user))
        if known[0] != element:
            raise TensorizeError(
                f"{format_region(region)} is used by {user} with elements "
                f"{_element_text(region.buffer, element)}, "
                f"and by {known[1]} with elements {_element_text(region.buffer, known[0])}; "
                f"one buffer has one layout: cache the tensor twice"
            )

    for node in walk_nodes(nest.body):
        if isinstance(node, Call):
            tensors = [node.intrin.op.tensor, *node.intrin.inputs]
            operands = [node.output, *node.inputs]
            for region, tensor, dims in zip(operands, tensors, node.dims, strict=False):
                set_element(region, element_of(region, dims, tensor.shape), node.intrin.form_name(node.form))
        elif isinstance(node, BlockEpilogue):
            scope = node.target.buffer.scope
            assert scope is not None
            for one in node.ops:
                for name in (step.op for step in passes(one.op)):
                    set_element(node.target, tuple(zip(node.dims, scope.element, strict=True)), name)
                    if one.operand is not None:
                        set_element(one.operand, _operand_element(one.operand, one.dims, scope.element), name)
                    if one.identity is not None:
                        set_element(one.identity, _operand_element(one.identity, (0, 1), scope.element), name)
    for node in walk_nodes(nest.body):
        if isinstance(node, StoreEpilogue):
            for region, element in _store_epilogue_elements(node, found):
                set_element(region, element, "STORE")
        elif isinstance(node, Copy) and node.target.buffer.scope is None and node.source.buffer in found:
            set_element(node.target, found[node.source.buffer][0], "STORE")
    _check_rereads(nest, {buffer: element for buffer, (element, _) in found.items()})
    hosts = {node.target for node in nest.body if isinstance(node, HostPack | HostConstant)}
    for buffer in nest.locals:
        if buffer in hosts:
            continue
        if buffer not in found:
            raise TensorizeError(f"{buffer.name} is only copied; no intrinsic determines its elements")
        _check_scope(buffer, found[buffer][0])
    return {buffer: element for buffer, (element, _) in found.items()}


def _operand_element(region: Region, dims: tuple[int | None, ...], otherwise: tuple[int, int]) -> Element:
    sizes = otherwise if region.buffer.scope is None else region.buffer.scope.element
    return tuple(zip(dims, sizes, strict=True))


def element_of(region: Region, dims: tuple[int | None, ...], shape: tuple[int, ...]) -> Element:
    """Use the last dimensions of an operand that covers several elements."""
    rank = len(shape) if region.buffer.scope is None else len(region.buffer.scope.element)
    return tuple(zip(dims, shape, strict=True))[-rank:]


def _store_epilogue_elements(
    node: StoreEpilogue, found: Mapping[Buffer, tuple[Element, str]]
) -> Iterator[tuple[Region, Element]]:
    """Results and residuals have the accumulators' element, parameters its number of channels."""
    name = node.source.buffer.name
    if node.source.buffer not in found:
        raise TensorizeError(f"{name} is only used by an epilogue; no intrinsic determines its elements")
    element = found[node.source.buffer][0]
    yield node.target, element
    for one in node.ops:
        assert one.operand is not None
        if one.operand.buffer.scope is None:
            yield one.operand, element
            continue
        if isinstance(one.op, StoreLookUp):
            yield one.operand, ((0, 1), (1, TABLE_BYTES))
            continue
        columns, width = element[1]
        if columns != one.dims[0]:
            raise TensorizeError(
                f"{name} has elements {_element_text(node.source.buffer, element)}; the store unit has "
                f"parameters for their columns; {one.operand.buffer.name} is of dim {one.dims[0]}"
            )
        yield one.operand, ((0, width), (1, 2))


def _check_rereads(nest: Nest, elements: dict[Buffer, Element]) -> None:
    """Check that a tensor that is loaded again was stored completely, in the same elements."""
    for node in walk_nodes(nest.body):
        if not isinstance(node, Copy) or node.source.buffer.scope is not None:
            continue
        stored, loaded = node.source.buffer, node.target.buffer
        if stored not in elements or loaded not in elements:
            continue
        if elements[stored] != elements[loaded]:
            raise TensorizeError(
                f"{stored.name} is stored in elements {_element_text(stored, elements[stored])} and loaded "
                f"into {loaded.name} in elements {_element_text(stored, elements[loaded])}; "
                f"a tensor that the program writes has one layout"
            )
        if nest.refill_loops.get(stored):
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


def block_shape(element: Element, dimensions: int) -> tuple[int, ...]:
    sizes = {d: size for d, size in element if d is not None}
    return tuple(sizes.get(d, 1) for d in range(dimensions))


def _element_text(buffer: Buffer, element: Element) -> str:
    names = ["-" if d is None else f"dim {d}" for d, _ in element]
    return "[" + ", ".join(f"{name}: {size}" for name, (_, size) in zip(names, element, strict=True)) + "]"

"""Execution of loop nests with numpy."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_mapping, plain_array
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.applied_operations import operation_values
from accel.compiler.expr.epilogue_operators import StoreLookUp, StoreRequantize
from accel.compiler.expr.linear_expressions import evaluate as evaluate_index
from accel.compiler.expr.linear_expressions import variables
from accel.compiler.expr.numpy_reference import apply, evaluate, values_at
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Composed,
    Condition,
    Const,
    Expr,
    Function,
    Guarded,
    IterVar,
    Read,
)
from accel.compiler.nest.epilogue_lowering import lower_epilogue
from accel.compiler.nest.nest import (
    AluCall,
    Assign,
    Buffer,
    Call,
    Copy,
    For,
    Guard,
    HostConstant,
    HostPack,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    ZeroRegion,
    unrolled_nodes,
)

Array = npt.NDArray[Any]
Env = dict[IterVar, int]

_ALU_OPS = {"zero": "*", "add": "+", "mul": "*", "shr": ">>", "min": "min", "max": "max"}
_MAX_GRID = 1 << 22
"""Maximum number of iterations that are evaluated at once."""


def interpret(nest: Nest, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Execute a nest at any stage. Inputs and returned outputs are values by name.

    Raises:
        ShapeError: an input is missing, not an array or a masked one, or ``inputs`` is not a mapping.
    """
    state = _State(nest, check_mapping("the inputs", inputs))
    state.run(nest.body, {})
    return {buffer.name: state.arrays[buffer] for buffer in nest.outputs}


class _State:
    def __init__(self, nest: Nest, inputs: Mapping[str, Array]) -> None:
        self.arrays: dict[Buffer, Array] = {}
        for buffer in nest.inputs:
            if buffer.name not in inputs:
                raise ShapeError(f"the input {buffer.name} is missing")
            what = f"a numpy array of {buffer.dtype}{list(buffer.shape)}"
            value = plain_array(buffer.name, inputs[buffer.name], what).astype(buffer.dtype)
            if buffer in nest.preparations:
                value = nest.preparations[buffer].apply(buffer.name, value)
            self.arrays[buffer] = value
        for buffer in (*nest.outputs, *nest.locals):
            shape = (buffer.sets, *buffer.shape) if buffer.sets > 1 else buffer.shape
            self.arrays[buffer] = np.full(shape, 77, dtype=buffer.dtype)

    def run(self, nodes: Sequence[Node], env: Env) -> None:
        for node in nodes:
            if isinstance(node, For) and node.is_unrolled:
                self.run(unrolled_nodes(node), env)
            elif isinstance(node, For):
                self._loop(node, env)
            elif isinstance(node, Guard):
                if all(evaluate_index(a, env) < evaluate_index(b, env) for a, b in node.conditions):
                    self.run(node.body, env)
            elif isinstance(node, Assign):
                self._assign(node, (), [], env)
            elif isinstance(node, ZeroRegion):
                self._part(node.region, env)[...] = 0
            elif isinstance(node, ZeroBuffer):
                self.arrays[node.buffer][...] = 0
            elif isinstance(node, HostPack):
                self.arrays[node.target] = node.packing.widen(self.arrays[node.source])
            elif isinstance(node, Copy):
                self._copy(node, env)
            elif isinstance(node, HostConstant):
                self.arrays[node.target] = node.value
            elif isinstance(node, StoreEpilogue):
                self._store(node, env)
            elif isinstance(node, Call):
                self._call(node, env)
            elif isinstance(node, TileEpilogue):
                self.run(lower_epilogue(node), env)
            else:
                assert isinstance(node, AluCall)
                self._alu(node, env)

    def _copy(self, node: Copy, env: Env) -> None:
        target, source = self._part(node.target, env), self._part(node.source, env)
        steps = node.strides or (1,) * source.ndim
        source = source[tuple(slice(None, None, step) for step in steps)]
        before = [evaluate_index(a, env) for a, _ in node.padding] or [0] * source.ndim
        target[...] = 0
        inner = tuple(slice(a, a + n) for a, n in zip(before, source.shape, strict=True))
        target[inner] = source.astype(target.dtype) - target.dtype.type(node.zero_point)

    def _store(self, node: StoreEpilogue, env: Env) -> None:
        """Parameters lie along the channels."""
        value = self._part(node.source, env).astype(np.int32)
        for one in node.ops:
            assert one.operand is not None
            part = self._part(one.operand, env)
            if isinstance(one.op, StoreRequantize):
                (d,) = (d for d in one.dims if d is not None)
                along = [-1 if k == d else 1 for k in range(value.ndim)]
                part = part[np.arange(value.shape[d]) % len(part)]
                bias, scale = (part[:, column].reshape(along) for column in (0, 1))
                operands = [bias, scale]
            elif isinstance(one.op, StoreLookUp):
                value = replace(one.op, entries=tuple(part[0].tolist())).apply(Const(0)).values(value)
                continue
            else:
                operands = [part.astype(np.int32)]
            function = one.op.apply(Const(0))
            assert isinstance(function, Function)
            value = function.values(value, *operands)
        self._part(node.target, env)[...] = value.astype(node.target.buffer.dtype)

    def _loop(self, node: For, env: Env) -> None:
        loops: list[For] = []
        conditions: list[Condition] = []
        inner: Node = node
        while isinstance(inner, For | Guard) and len(inner.body) == 1:
            if isinstance(inner, For):
                if inner.is_unrolled:
                    break
                loops.append(inner)
            else:
                conditions.extend(inner.conditions)
            inner = inner.body[0]
        if isinstance(inner, Assign):
            grid = []
            for position, loop in enumerate(loops):
                if set(variables(loop.extent)) & {other.var for other in loops[:position]}:
                    conditions.append((loop.var, loop.extent))
                    grid.append((loop.var, loop.var.extent))
                else:
                    grid.append((loop.var, max(0, evaluate_index(loop.extent, env))))
            if prod(extent for _, extent in grid) <= _MAX_GRID:
                self._assign(inner, grid, conditions, env)
                return
        for value in range(evaluate_index(node.extent, env)):
            env[node.var] = value
            self.run(node.body, env)

    def _assign(
        self,
        node: Assign,
        grid: Sequence[tuple[IterVar, int]],
        conditions: Sequence[Condition],
        env: Env,
    ) -> None:
        shape = tuple(extent for _, extent in grid)
        values: dict[IterVar, Array] = {v: np.array(n) for v, n in env.items()}
        for position, (v, extent) in enumerate(grid):
            along = [extent if n == position else 1 for n in range(len(grid))]
            values[v] = np.arange(extent).reshape(along)
        mask = np.ones(shape, dtype=bool)
        for a, b in conditions:
            mask &= values_at(a, values) < values_at(b, values)
        if not mask.any():
            return
        values = {v: np.broadcast_to(a, shape)[mask] for v, a in values.items()}
        assert isinstance(node.target.tensor, Buffer)
        target = self.arrays[node.target.tensor]
        index = tuple(np.broadcast_to(values_at(i, values), (int(mask.sum()),)) for i in node.target.indices)
        result = self._scalar(node.value, values)
        if node.accumulate:
            np.add.at(target, index, np.broadcast_to(result, index[0].shape).astype(target.dtype))
        else:
            target[index] = result.astype(target.dtype)

    def _scalar(self, expr: Expr, values: dict[IterVar, Array]) -> Array:
        if isinstance(expr, Const):
            return np.array(expr.value, dtype=np.int32)
        if isinstance(expr, IterVar):
            return values[expr].astype(np.int32)
        if isinstance(expr, Cast):
            return self._scalar(expr.value, values).astype(expr.to)
        if isinstance(expr, Read):
            assert isinstance(expr.tensor, Buffer)
            found = self.arrays[expr.tensor][tuple(values_at(i, values) for i in expr.indices)]
            return np.asarray(found).astype(np.int32)
        if isinstance(expr, Guarded):
            return self._guarded(expr, values)
        if isinstance(expr, Composed):
            return self._scalar(expr.plain(), values)
        if isinstance(expr, Function):
            return expr.values(*(self._scalar(part, values) for part in expr.parts())).astype(np.int32)
        assert isinstance(expr, Binary)
        return apply(expr.op, self._scalar(expr.a, values), self._scalar(expr.b, values))

    def _guarded(self, expr: Guarded, values: dict[IterVar, Array]) -> Array:
        shape = np.broadcast_shapes(*(a.shape for a in values.values()))
        mask = np.ones(shape, dtype=bool)
        for a, b in expr.conditions:
            mask &= values_at(a, values) < values_at(b, values)
        result = np.full(shape, expr.otherwise, dtype=np.int32)
        if mask.any():
            where = {v: np.broadcast_to(a, shape)[mask] for v, a in values.items()}
            result[mask] = self._scalar(expr.value, where)
        return result

    def _part(self, region: Region, env: Env) -> Array:
        array = self.arrays[region.buffer]
        if region.buffer.sets > 1:
            array = array[evaluate_index(region.set_index, env)]
        slices = []
        for r in region.ranges:
            start, extent = evaluate_index(r.start, env), evaluate_index(r.extent, env)
            slices.append(slice(start, start + max(0, extent)))
        return array[tuple(slices)]

    def _block(self, region: Region, dims: tuple[int | None, ...], shape: tuple[int, ...], env: Env) -> Array:
        part = self._part(region, env)
        order = [d for d in dims if d is not None]
        rest = [d for d in range(part.ndim) if d not in order]
        part = part.transpose(rest + order).reshape([part.shape[d] for d in order])
        expanded = part.reshape([1 if d is None else part.shape[order.index(d)] for d in dims])
        block = np.zeros(shape, dtype=part.dtype)
        sizes = tuple(
            slice(0, full if d is None else expanded.shape[k])
            for k, (d, full) in enumerate(zip(dims, shape, strict=True))
        )
        block[sizes] = expanded
        return block

    def _write_block(
        self, region: Region, dims: tuple[int | None, ...], block: Array, env: Env, *, add: bool
    ) -> None:
        part = self._part(region, env)
        order = [d for d in dims if d is not None]
        cut = block[tuple(0 if d is None else slice(0, part.shape[d]) for d in dims)]
        sizes = dict(zip(order, cut.shape, strict=True))
        ascending = sorted(order)
        cut = cut.transpose([order.index(d) for d in ascending])
        cut = cut.reshape([sizes.get(d, 1) for d in range(part.ndim)])
        if add:
            part += cut.astype(part.dtype)
        else:
            part[...] = cut.astype(part.dtype)

    def _call(self, node: Call, env: Env) -> None:
        op = node.intrin.op
        if node.form == "reset":
            block: Array = np.zeros(op.shape, dtype=np.int32)
        else:
            inputs = {
                tensor.name: _as_operand(self._block(region, dims, tensor.shape, env), tensor.dtype)
                for tensor, region, dims in zip(node.intrin.inputs, node.inputs, node.dims[1:], strict=True)
            }
            block = evaluate([op.tensor], inputs)[op.name]
        self._write_block(node.output, node.dims[0], block, env, add=node.form == "update")

    def _alu(self, node: AluCall, env: Env) -> None:
        scope = node.target.buffer.scope
        assert scope is not None
        block = self._block(node.target, node.dims[0], scope.element, env)
        if isinstance(node.operand, int):
            operand: Array = np.array(node.operand, dtype=np.int32)
        else:
            operand = self._block(node.operand, node.dims[1], scope.element, env)
        if node.op in _ALU_OPS:
            result = apply(_ALU_OPS[node.op], block, operand)
        else:
            result = operation_values(node.op, block, operand)
        self._write_block(node.target, node.dims[0], result, env, add=False)


def _as_operand(block: Array, dtype: str) -> Array:
    """Bytes minus a zero point keep their nine bits."""
    return block if block.dtype == np.int16 else block.astype(dtype)

"""The declared intrinsics of a machine."""

from collections.abc import Sequence
from functools import lru_cache

from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import PostOp, StoreCombination, StoreRequantize
from accel.compiler.expr.scalar_expressions import Const, Dtype, Expr, IterVar, cast
from accel.compiler.expr.tensor_expressions import Compute, compute, placeholder, reduce_axis, sum
from accel.compiler.target import builtin_emitters
from accel.compiler.target.intrinsic_declaration import (
    AluIntrin,
    CopyIntrin,
    HardwareCall,
    IntrinOperand,
    StoreIntrin,
    TensorIntrin,
    decl_tensor_intrin,
    hardware_intrin,
)
from accel.core.config import Config

__all__ = ["alu", "builtin_emitters", "depthwise", "dma_copy2d", "fill_zero", "finished", "gemm", "post"]

_Operands = Sequence[IntrinOperand]


@lru_cache(maxsize=64)
def gemm(config: Config) -> TensorIntrin:
    """``acc[i][j] = sum over k of inp[i][k] * wgt[j][k]``."""
    block = config.block_name
    w = placeholder((config.batch, config.block_in), name="w")
    x = placeholder((config.block_out, config.block_in), name="x")
    k = reduce_axis((0, config.block_in), name="k")
    y = compute((config.batch, config.block_out), lambda i, j: sum(w[i, k] * x[j, k], axis=k), name="y")

    def lower(inputs: _Operands, outputs: _Operands) -> tuple[HardwareCall, HardwareCall, HardwareCall]:
        ww, xx = inputs[0].access_ptr("r"), inputs[1].access_ptr("r")
        zz = outputs[0].access_ptr("w")
        whole = hardware_intrin(f"gemm{block}", ww, xx, zz)
        reset = hardware_intrin("fill_zero", zz)
        update = hardware_intrin(f"fused_gemm{block}_add", ww, xx, zz)
        return whole, reset, update

    scopes = {w: "inp_buffer", x: "wgt_buffer", y: "acc_buffer"}
    return decl_tensor_intrin(y, lower, scopes=scopes)


@lru_cache(maxsize=64)
def depthwise(config: Config) -> TensorIntrin:
    """``acc[i][j] = sum over t of inp[t][i][j] * wgt[j][t]``.

    inp has one element for each column of the kernel, in a row. After these columns, wgt is zero.
    """
    size = config.block_in
    w = placeholder((size, config.batch, size), name="w")
    x = placeholder((size, size), name="x")
    t = reduce_axis((0, size), name="t")
    y = compute((config.batch, size), lambda i, j: sum(w[t, i, j] * x[j, t], axis=t), name="y")

    def lower(inputs: _Operands, outputs: _Operands) -> tuple[HardwareCall, HardwareCall, HardwareCall]:
        ww, xx = inputs[0].access_ptr("r"), inputs[1].access_ptr("r")
        zz = outputs[0].access_ptr("w")
        whole = hardware_intrin("depthwise", ww, xx, zz)
        reset = hardware_intrin("fill_zero", zz)
        update = hardware_intrin("fused_depthwise_add", ww, xx, zz)
        return whole, reset, update

    scopes = {w: "inp_buffer", x: "wgt_buffer", y: "acc_buffer"}
    return decl_tensor_intrin(y, lower, scopes=scopes)


@lru_cache(maxsize=64)
def fill_zero(config: Config) -> TensorIntrin:
    """``acc[i][j] = 0``."""
    y = compute((config.batch, config.block_out), lambda i, j: Const(0), name="y")

    def lower(inputs: _Operands, outputs: _Operands) -> HardwareCall:
        return hardware_intrin("fill_zero", outputs[0].access_ptr("w"))

    return decl_tensor_intrin(y, lower, scopes={y: "acc_buffer"})


@lru_cache(maxsize=64)
def dma_copy2d(config: Config) -> CopyIntrin:
    """``y[i][j] = x[i][j]``, between DRAM and a scratchpad."""
    x = placeholder((config.batch, config.block_out), name="x")
    y = compute((config.batch, config.block_out), lambda i, j: x[i, j], name="y")

    def lower(inputs: _Operands, outputs: _Operands) -> HardwareCall:
        return hardware_intrin("dma_copy2d", outputs[0].access_ptr("w"), inputs[0].access_ptr("r"))

    declared = decl_tensor_intrin(y, lower)
    return CopyIntrin(
        name=declared.name,
        op=declared.op,
        inputs=declared.inputs,
        compute=declared.compute,
        reset=(),
        update=(),
        scopes={},
    )


@lru_cache(maxsize=64)
def alu(config: Config) -> AluIntrin:
    return AluIntrin(name="alu", block=(config.batch, config.block_out))


@lru_cache(maxsize=64)
def post(config: Config) -> StoreIntrin:
    return StoreIntrin(name="post")


def finished(config: Config, ops: Sequence[PostOp], residual: Dtype = "int8") -> Compute:
    """Return the value that :func:`post` computes: ``y[i][j]`` of ``acc[i][j]``, ``par[j][0]``, ``par[j][1]``
    and any residual ``res[i][j]``.

    Args:
        ops: ``StoreRequantize``, perhaps with ``StoreAdd`` or ``StoreMultiply``. Their operands do not
            matter.
    """
    shape = config.batch, config.block_out
    acc, par = placeholder(shape, "int32", name="acc"), placeholder((shape[1], 2), "int32", name="par")
    res = placeholder(shape, residual, name="res")

    def body(i: IterVar, j: IterVar) -> Expr:
        value: Expr = acc[i, j]
        for op in ops:
            if isinstance(op, StoreRequantize):
                value = replace(op, bias=par[j, 0], scale=par[j, 1]).apply(value)
            else:
                assert isinstance(op, StoreCombination)
                value = replace(op, operand=res[i, j]).apply(value)
        return cast(value, "int8")

    op = compute(shape, body, name="y").op
    assert isinstance(op, Compute)
    return op

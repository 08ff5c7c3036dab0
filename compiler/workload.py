"""Common computations as tensor expressions."""

from dataclasses import dataclass
from typing import Any

from accel.compiler.expr import Expr, IterVar, clip, maximum
from accel.compiler.tensor import Tensor, compute, placeholder, reduce_axis, sum
from accel.errors import ShapeError

INT8_LOW, INT8_HIGH = -128, 127


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A computation and how it came about.

    Attributes:
        name: ``gemm``.
        output: the tensor to compute.
        sums: the stage that the GEMM core computes; the output itself if nothing follows it.
        parameters: the arguments that made it, as plain data.
    """

    name: str
    output: Tensor
    sums: Tensor
    parameters: dict[str, Any]


def gemm(
    M: int,
    N: int,
    K: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: bool = False,
    relu: bool = False,
    shift: int | None = None,
) -> Workload:
    """C = A @ B, int8 operands, int32 sums, int8 result.

    A is (M, K), or (K, M) with ``transpose_a``; B is (K, N), or (N, K) with ``transpose_b``. Without
    ``shift`` and ``relu``, C holds the low 8 bits of the sum, ``bias`` added if there is one. With either,
    in this order: plus bias, arithmetic shift right, ReLU, saturation to int8.

    Args:
        M, N, K: sizes, at least 1.
        transpose_a, transpose_b: how the operands are stored.
        bias: add an int32 tensor ``bias`` of shape (N,).
        relu: negative values become zero.
        shift: 0..31.

    Raises:
        ShapeError: a size or shift out of range, or K too long for int32 sums.
    """
    for name, size in (("M", M), ("N", N), ("K", K)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ShapeError(f"{name} is {size!r}; it must be a positive integer")
    if shift is not None and (isinstance(shift, bool) or not isinstance(shift, int) or not 0 <= shift <= 31):
        raise ShapeError(f"shift is {shift!r}; it must be in 0..31")
    A = placeholder((K, M) if transpose_a else (M, K), name="A")
    B = placeholder((N, K) if transpose_b else (K, N), name="B")
    offset = placeholder((N,), "int32", name="bias") if bias else None
    k = reduce_axis((0, K), name="k")
    epilogue = bias or relu or shift is not None
    sums = compute(
        (M, N),
        lambda y, x: sum(
            (A[k, y] if transpose_a else A[y, k]) * (B[x, k] if transpose_b else B[k, x]), axis=k
        ),
        name="S" if epilogue else "C",
        dtype=None if epilogue else "int8",
    )
    output = sums
    if epilogue:

        def result(y: IterVar, x: IterVar) -> Expr:
            value: Expr = sums[y, x]
            if offset is not None:
                value = value + offset[x]
            if shift is not None:
                value = value >> shift
            if relu:
                value = maximum(value, 0)
            if relu or shift is not None:
                value = clip(value, INT8_LOW, INT8_HIGH)
            return value

        output = compute((M, N), result, name="C", dtype="int8")
    parameters = {
        "M": M,
        "N": N,
        "K": K,
        "transpose_a": transpose_a,
        "transpose_b": transpose_b,
        "bias": bias,
        "relu": relu,
        "shift": shift,
    }
    return Workload(name="gemm", output=output, sums=sums, parameters=parameters)

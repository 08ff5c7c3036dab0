"""Common computations as tensor expressions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from accel.base.arguments import check_flag, check_integer
from accel.compiler.expr.data import expression_to_data
from accel.compiler.expr.scalar import Expr, IterVar, Read, reads
from accel.compiler.expr.tensor import Compute, Tensor, compute, placeholder, reduce_axis, reduction, sum
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.mean import Mean


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """A computation and how it came about. Two are equal if they compute the same from the same arguments,
    under the same names.

    Attributes:
        name: of the function that made it.
        output: the tensor to compute.
        sums: the stage that the GEMM core computes; the output itself if nothing follows it.
        bias: what is added to the sums, if anything is.
        residual: what is added after the shift, if anything is.
        epilogue: what follows the sums.
        parameters: the arguments that made it, as plain data.
    """

    name: str
    output: Tensor
    sums: Tensor
    bias: Tensor | None
    epilogue: Epilogue | Mean
    parameters: dict[str, Any]
    residual: Tensor | None = None

    def __eq__(self, other: object) -> bool:
        return self._as_data() == other._as_data() if isinstance(other, Workload) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.output.name, self.output.shape))

    def _as_data(self) -> tuple[Any, ...]:
        parts = (self.output, self.sums, self.bias, self.residual)
        names = [None if tensor is None else tensor.name for tensor in parts]
        return self.name, self.parameters, self.epilogue, names, expression_to_data([self.output])

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"Workload({self.name}: {arguments})"

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The axes of the sums."""
        assert isinstance(self.sums.op, Compute)
        return self.sums.op.axis

    @property
    def reduce_axes(self) -> tuple[IterVar, ...]:
        """What the sums run over."""
        assert isinstance(self.sums.op, Compute)
        return self.sums.op.reduce_axis

    @property
    def data(self) -> Read:
        """The value that is summed up, or the first factor of the products that are."""
        assert isinstance(self.sums.op, Compute)
        return reads(self.sums.op.body)[0]

    @property
    def is_product(self) -> bool:
        """Whether products are summed up, and not elements."""
        assert isinstance(self.sums.op, Compute)
        return len(reads(self.sums.op.body)) > 1

    @property
    def factors(self) -> tuple[Read, Read]:
        """The two values whose products are summed: of the data and of the weights."""
        assert isinstance(self.sums.op, Compute)
        total = reduction(self.sums.op.body)
        assert total is not None
        data, weights = reads(total.body)
        return data, weights


def check_sizes(**sizes: object) -> tuple[int, ...]:
    """Sizes, in order, as Python's own integers.

    Raises:
        ShapeError: naming the one that is no positive integer.
    """
    return tuple(check_integer(name, size) for name, size in sizes.items())


def gemm(
    M: int,
    N: int,
    K: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
) -> Workload:
    """C = A @ B and an epilogue, int8 operands, int32 sums, int8 result.

    A is (M, K), or (K, M) with ``transpose_a``; B is (K, N), or (N, K) with ``transpose_b``. Without
    ``shift``, ``residual``, ``relu`` and ``clip``, C holds the low 8 bits of the sum, ``bias`` added if there
    is one. With any, in this order: plus bias, arithmetic shift right, plus residual, ReLU, saturation.

    Args:
        M, N, K: sizes, at least 1.
        transpose_a, transpose_b: how the operands are stored.
        bias: add an int32 tensor ``bias`` of shape (N,).
        residual: add an int8 tensor ``residual`` of the shape of C.
        relu, shift, clip: see :class:`~accel.compiler.ops.epilogue.Epilogue`.

    Raises:
        ShapeError: a size, flag, shift or clip out of range, or K too long for int32 sums.
    """
    M, N, K = check_sizes(M=M, N=N, K=K)
    transpose_a = check_flag("transpose_a", transpose_a)
    transpose_b = check_flag("transpose_b", transpose_b)
    epilogue = Epilogue(bias=bias, shift=shift, residual=residual, relu=relu, clip=clip)
    A = placeholder((K, M) if transpose_a else (M, K), name="A")
    B = placeholder((N, K) if transpose_b else (K, N), name="B")
    transposed = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    parameters = {"M": M, "N": N, "K": K} | transposed | epilogue.to_dict()
    return _product("gemm", "C", A, B, (transpose_a, transpose_b), epilogue, parameters)


def dense(
    N: int,
    IC: int,
    OC: int,
    *,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
) -> Workload:
    """A fully connected layer: ``out = data @ weight.T`` and an epilogue.

    ``data`` is int8 (N, IC), ``weight`` int8 (OC, IC), ``out`` int8 (N, OC).

    Args:
        N: rows, as many as there are inputs in a batch.
        IC, OC: inputs and outputs of the layer.
        bias: add an int32 tensor ``bias`` of shape (OC,).
        residual: add an int8 tensor ``residual`` of the shape of ``out``.
        relu, shift, clip: see :class:`~accel.compiler.ops.epilogue.Epilogue`.

    Raises:
        ShapeError: a size, flag, shift or clip out of range, or IC too long for int32 sums.
    """
    N, IC, OC = check_sizes(N=N, IC=IC, OC=OC)
    epilogue = Epilogue(bias=bias, shift=shift, residual=residual, relu=relu, clip=clip)
    data, weight = placeholder((N, IC), name="data"), placeholder((OC, IC), name="weight")
    parameters = {"N": N, "IC": IC, "OC": OC} | epilogue.to_dict()
    return _product("dense", "out", data, weight, (False, True), epilogue, parameters)


def _product(
    workload: str,
    name: str,
    A: Tensor,
    B: Tensor,
    transposed: tuple[bool, bool],
    epilogue: Epilogue,
    parameters: dict[str, Any],
) -> Workload:
    """A matrix product and its epilogue; ``name`` is the result's."""
    M, K = A.shape[::-1] if transposed[0] else A.shape
    N = B.shape[0] if transposed[1] else B.shape[1]
    k = reduce_axis((0, K), name="k")
    return with_epilogue(
        workload,
        (M, N),
        lambda y, x: sum(
            (A[k, y] if transposed[0] else A[y, k]) * (B[x, k] if transposed[1] else B[k, x]), axis=k
        ),
        epilogue,
        parameters,
        result=name,
    )


def with_epilogue(
    name: str,
    shape: tuple[int, ...],
    total: Callable[..., Expr],
    epilogue: Epilogue,
    parameters: dict[str, Any],
    *,
    result: str = "out",
) -> Workload:
    """A workload of sums and what follows them, with its inputs for that: bias and residual.

    Args:
        name: of the workload.
        shape: of the result; its second dimension is the bias's.
        total: the sum of an element; its parameters name the axes.
        epilogue: what follows.
        parameters: the arguments that made the workload.
        result: name of the result.
    """
    bias = placeholder((shape[1],), "int32", name="bias") if epilogue.bias else None
    residual = placeholder(shape, name="residual") if epilogue.residual else None

    def after(value: Expr, at: tuple[IterVar, ...]) -> Expr:
        return epilogue.apply(
            value, None if bias is None else bias[at[1]], None if residual is None else residual[at]
        )

    sums, output = sums_and_result(shape, total, None if epilogue.is_empty else after, result)
    return Workload(
        name=name,
        output=output,
        sums=sums,
        bias=bias,
        residual=residual,
        epilogue=epilogue,
        parameters=parameters,
    )


def sums_and_result(
    shape: tuple[int, ...],
    total: Callable[..., Expr],
    after: Callable[[Expr, tuple[IterVar, ...]], Expr] | None,
    result: str = "out",
) -> tuple[Tensor, Tensor]:
    """Sums and the int8 tensor that becomes of them; the same one, of their low bytes, if nothing follows.

    Args:
        shape: of both.
        total: the sum of an element; its parameters name the axes.
        after: the result of an element, from its sum and its place.
        result: name of the result.
    """
    if after is None:
        sums = compute(shape, total, name=result, dtype="int8")
        return sums, sums
    named = compute(shape, total, name=result).op  # what is refused bears the result's name
    sums = replace(named, name="S").tensor

    @wraps(total)  # for the names of the axes
    def element(*at: IterVar) -> Expr:
        return after(sums[at], at)

    return sums, compute(shape, element, name=result, dtype="int8")

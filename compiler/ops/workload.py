"""Common computations as tensor expressions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from accel.base.arguments import check_flag, check_integer
from accel.base.errors import ShapeError
from accel.compiler.expr.data import expression_to_data
from accel.compiler.expr.scalar import Expr, IterVar, Read, reads
from accel.compiler.expr.tensor import Compute, Tensor, compute, placeholder, reduce_axis, reduction, sum
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.mean import Mean
from accel.compiler.ops.quantized import Quantized


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
    epilogue: Epilogue | Mean | Quantized
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
    quantized: Quantized | None = None,
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
        quantized: scales and zero points in place of these and of ``residual``, see
            :class:`~accel.compiler.ops.quantized.Quantized`; for machines with ``post=1``. A is of its
            ``input_dtype`` and C of its output type.

    Raises:
        ShapeError: a size, flag, shift or clip out of range, or K too long for int32 sums.
    """
    M, N, K = check_sizes(M=M, N=N, K=K)
    transpose_a = check_flag("transpose_a", transpose_a)
    transpose_b = check_flag("transpose_b", transpose_b)
    epilogue = epilogue_of(
        quantized, bias=bias, shift=shift, residual=residual, relu=relu, clip=clip, channels=N
    )
    A = input_of(epilogue, (K, M) if transpose_a else (M, K), "A")
    B = placeholder((N, K) if transpose_b else (K, N), name="B")
    transposed = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    parameters = {"M": M, "N": N, "K": K} | transposed | parameters_of(epilogue, bias)
    return _product("gemm", "C", A, B, (transpose_a, transpose_b), epilogue, bias, parameters)


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
    quantized: Quantized | None = None,
) -> Workload:
    """A fully connected layer: ``out = data @ weight.T`` and an epilogue.

    ``data`` is int8 (N, IC), ``weight`` int8 (OC, IC), ``out`` int8 (N, OC).

    Args:
        N: rows, as many as there are inputs in a batch.
        IC, OC: inputs and outputs of the layer.
        bias: add an int32 tensor ``bias`` of shape (OC,).
        residual: add an int8 tensor ``residual`` of the shape of ``out``.
        relu, shift, clip: see :class:`~accel.compiler.ops.epilogue.Epilogue`.
        quantized: scales and zero points in place of these and of ``residual``, see
            :class:`~accel.compiler.ops.quantized.Quantized`; for machines with ``post=1``. ``data`` is of its
            ``input_dtype`` and ``out`` of its output type.

    Raises:
        ShapeError: a size, flag, shift or clip out of range, or IC too long for int32 sums.
    """
    N, IC, OC = check_sizes(N=N, IC=IC, OC=OC)
    epilogue = epilogue_of(
        quantized, bias=bias, shift=shift, residual=residual, relu=relu, clip=clip, channels=OC
    )
    data, weight = input_of(epilogue, (N, IC), "data"), placeholder((OC, IC), name="weight")
    parameters = {"N": N, "IC": IC, "OC": OC} | parameters_of(epilogue, bias)
    return _product("dense", "out", data, weight, (False, True), epilogue, bias, parameters)


def epilogue_of(quantized: object, *, bias: bool, channels: int, **others: Any) -> Epilogue | Quantized:
    """What follows sums, from the arguments of an operator.

    Args:
        quantized: scales and zero points, or None.
        bias: whether one is added.
        channels: of the result.
        others: of :class:`Epilogue`.

    Raises:
        ShapeError: both are given, scales of another number of channels, or a bad value.
    """
    if quantized is None:
        return Epilogue(bias=bias, **others)
    check_flag("bias", bias)
    if not isinstance(quantized, Quantized):
        raise ShapeError(f"quantized is {quantized!r}; it must be an accel.Quantized")
    for name, value in others.items():
        if value is not None and value is not False:
            raise ShapeError(
                f"{name} is {value!r} besides quantized; a quantized layer has what it needs in quantized: "
                f"scale, clip, residual"
            )
    quantized.check_channels(channels)
    return quantized


def input_of(epilogue: Epilogue | Quantized, shape: tuple[int, ...], name: str) -> Tensor:
    """A layer's input, less its zero point where it has one."""
    return (
        epilogue.input(shape, name)[1] if isinstance(epilogue, Quantized) else placeholder(shape, name=name)
    )


def parameters_of(epilogue: Epilogue | Quantized, bias: bool) -> dict[str, Any]:
    """An epilogue's parameters as plain data, the bias among them."""
    return {"bias": bool(bias)} | epilogue.to_dict()


def _product(
    workload: str,
    name: str,
    A: Tensor,
    B: Tensor,
    transposed: tuple[bool, bool],
    epilogue: Epilogue | Quantized,
    bias: bool,
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
        bias=bias,
        result=name,
    )


def with_epilogue(
    name: str,
    shape: tuple[int, ...],
    total: Callable[..., Expr],
    epilogue: Epilogue | Quantized,
    parameters: dict[str, Any],
    *,
    bias: bool,
    result: str = "out",
) -> Workload:
    """A workload of sums and what follows them, with its inputs for that: bias and residual.

    Args:
        name: of the workload.
        shape: of the result; its second dimension is the bias's.
        total: the sum of an element; its parameters name the axes.
        epilogue: what follows.
        parameters: the arguments that made the workload.
        bias: whether there is one, int32.
        result: name of the result.
    """
    added = placeholder((shape[1],), "int32", name="bias") if bias else None
    residual, dtype = None, "int8"
    if isinstance(epilogue, Quantized):
        dtype = epilogue.dtype
        if epilogue.residual is not None:
            residual = placeholder(shape, epilogue.residual.dtype, name="residual")
    elif epilogue.residual:
        residual = placeholder(shape, name="residual")

    def after(value: Expr, at: tuple[IterVar, ...]) -> Expr:
        elements = None if added is None else added[at[1]], None if residual is None else residual[at]
        if isinstance(epilogue, Quantized):
            return epilogue.apply(value, at[1], *elements)
        return epilogue.apply(value, *elements)

    sums, output = sums_and_result(shape, total, None if epilogue.is_empty else after, result, dtype)
    return Workload(
        name=name,
        output=output,
        sums=sums,
        bias=added,
        residual=residual,
        epilogue=epilogue,
        parameters=parameters,
    )


def sums_and_result(
    shape: tuple[int, ...],
    total: Callable[..., Expr],
    after: Callable[[Expr, tuple[IterVar, ...]], Expr] | None,
    result: str = "out",
    dtype: str = "int8",
) -> tuple[Tensor, Tensor]:
    """Sums and the tensor of bytes that becomes of them; one and the same, of low bytes, if nothing follows.

    Args:
        shape: of both.
        total: the sum of an element; its parameters name the axes.
        after: the result of an element, from its sum and its place.
        result: name of the result.
        dtype: of the result, ``int8`` or ``uint8``.
    """
    if after is None:
        sums = compute(shape, total, name=result, dtype=dtype)
        return sums, sums
    named = compute(shape, total, name=result).op  # what is refused bears the result's name
    sums = replace(named, name="S").tensor

    @wraps(total)  # for the names of the axes
    def element(*at: IterVar) -> Expr:
        return after(sums[at], at)

    return sums, compute(shape, element, name=result, dtype=dtype)

"""Matrix products and fully connected layers as tensor expressions, and workloads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from accel.base.arguments import check_flag, check_integer
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.expr.scalar_expressions import Expr, IterVar, Read, reads
from accel.compiler.expr.tensor_expressions import (
    Compute,
    Tensor,
    compute,
    placeholder,
    reduce_axis,
    reduction,
    sum,
)
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.epilogue_operations import Operations
from accel.compiler.ops.integer_mean import Mean
from accel.compiler.ops.quantized_layers import Quantized


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """A computation. Equal workloads have equal computations, arguments and names.

    Attributes:
        name, parameters: the function that made it, and its arguments as plain data.
        output: the tensor to compute.
        sums: the stage that the GEMM core computes, or the output if there is no epilogue.
        bias, residual: the tensors added to the sums and after the shift, or None.
        operands: tensors of the operations of the epilogue, with one int32 value per channel.
        epilogue: the operations after the sums.
    """

    name: str
    output: Tensor
    sums: Tensor
    bias: Tensor | None
    epilogue: Epilogue | Mean | Quantized
    parameters: dict[str, Any]
    residual: Tensor | None = None
    operands: tuple[Tensor, ...] = ()

    def __eq__(self, other: object) -> bool:
        return self._as_data() == other._as_data() if isinstance(other, Workload) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.output.name, self.output.shape))

    def _as_data(self) -> tuple[Any, ...]:
        parts = (self.output, self.sums, self.bias, self.residual, *self.operands)
        names = [None if tensor is None else tensor.name for tensor in parts]
        return self.name, self.parameters, self.epilogue, names, expression_to_data([self.output])

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"Workload({self.name}: {arguments})"

    @property
    def channels(self) -> int:
        """Size of the output's dimension with requantization parameters: the last of a batch of products,
        else the second."""
        shape = self.output.shape
        return shape[2 if len(shape) == 3 else min(1, len(shape) - 1)]

    @property
    def channel_tensors(self) -> tuple[Tensor, ...]:
        """The bias, if any, then :attr:`operands`."""
        return self.operands if self.bias is None else (self.bias, *self.operands)

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The axes of the sums."""
        assert isinstance(self.sums.op, Compute)
        return self.sums.op.axis

    @property
    def reduce_axes(self) -> tuple[IterVar, ...]:
        """The reduce axes of the sums."""
        assert isinstance(self.sums.op, Compute)
        return self.sums.op.reduce_axis

    @property
    def data(self) -> Read:
        """The summed value, or the first factor of the summed products."""
        assert isinstance(self.sums.op, Compute)
        return reads(self.sums.op.body)[0]

    @property
    def is_product(self) -> bool:
        """Whether it sums products, not elements."""
        assert isinstance(self.sums.op, Compute)
        return len(reads(self.sums.op.body)) > 1

    @property
    def factors(self) -> tuple[Read, Read]:
        """The two factors of the summed products: data and weights."""
        assert isinstance(self.sums.op, Compute)
        total = reduction(self.sums.op.body)
        assert total is not None
        data, weights = reads(total.body)
        return data, weights


def check_sizes(**sizes: object) -> tuple[int, ...]:
    return tuple(check_integer(name, size) for name, size in sizes.items())


def gemm(
    M: int,
    N: int,
    K: int,
    *,
    batch: int | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
    operations: Operations = (),
    quantized: Quantized | None = None,
) -> Workload:
    """Return C = A @ B with an epilogue: int8 operands, int32 sums, int8 result.

    A is (M, K), or (K, M) with ``transpose_a``. B is (K, N), or (N, K) with ``transpose_b``. The epilogue
    adds ``bias``, shifts right arithmetically, adds ``residual``, applies ReLU and saturates, in this order.
    Without ``shift``, ``residual``, ``relu`` and ``clip``, C holds the low 8 bits. For example, ``gemm(196,
    256, 2304, bias=True, shift=8)`` multiplies 196 x 2304 by 2304 x 256 and divides the sums plus bias by
    256.

    With ``quantized``, both operands may be results of other layers, and ``batch`` pairs of matrices are
    multiplied. For example, ``gemm(64, 64, 32, batch=12, quantized=...)`` has A of (12, 64, 32) and B of (12,
    32, 64), such as the queries and keys of 12 heads.

    Args:
        M, N, K: sizes, at least 1.
        batch: None for one pair without that dimension.
        bias: add an int32 tensor ``bias`` of shape (N,).
        residual: add an int8 tensor ``residual`` of the shape of C.
        relu, shift, clip: see :class:`~accel.compiler.ops.epilogue.Epilogue`.
        operations: declared operations of the ALU on the sums after the bias and before the shift, as pairs
            of an operation or its name and its operand. The operand is an immediate, or ``"channel"`` for an
            int32 tensor of shape (N,). These tensors are inputs with the names ``operand0``, ``operand1`` and
            so on. For example, ``[("max", 7), ("add", "channel")]`` adds ``operand0`` to sums of at least 7.
        quantized: scales, zero points and dtypes for machines with ``post=1``, instead of ``residual``,
            ``relu``, ``shift``, ``clip`` and ``operations``.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: an argument is out of range, an operation crosses lanes, or K is too long for int32 sums.
    """
    M, N, K = check_sizes(M=M, N=N, K=K)
    transpose_a = check_flag("transpose_a", transpose_a)
    transpose_b = check_flag("transpose_b", transpose_b)
    epilogue = epilogue_of(
        quantized,
        bias=bias,
        shift=shift,
        residual=residual,
        relu=relu,
        clip=clip,
        operations=operations,
        channels=N,
        has_second_zero=True,
    )
    parameters: dict[str, Any] = {"M": M, "N": N, "K": K}
    batches: tuple[int, ...] = ()
    if batch is not None:
        batches = check_sizes(batch=batch)
        if not isinstance(epilogue, Quantized) or epilogue.residual is not None:
            raise ShapeError(f"batch is {batch}; several products need quantized, without a residual")
        parameters["batch"] = batches[0]
    A = input_of(epilogue, (*batches, *((K, M) if transpose_a else (M, K))), "A")
    B = weights_of(epilogue, (*batches, *((N, K) if transpose_b else (K, N))), "B")
    transposed = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    parameters |= transposed | parameters_of(epilogue, bias)
    return _matrix_product("gemm", "C", A, B, (transpose_a, transpose_b), epilogue, bias, parameters)


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
    operations: Operations = (),
    quantized: Quantized | None = None,
) -> Workload:
    """Return a fully connected layer: ``out = data @ weight.T`` with an epilogue.

    ``data`` is int8 (N, IC), ``weight`` int8 (OC, IC), ``out`` int8 (N, OC).

    Args:
        N: batch size.
        IC, OC: inputs and outputs of the layer.
        bias, residual, relu, shift, clip, operations, quantized: as in :func:`accel.gemm`, for ``data`` and
            ``out``.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: an argument is out of range, an operation crosses lanes, or IC is too long for int32 sums.
    """
    N, IC, OC = check_sizes(N=N, IC=IC, OC=OC)
    epilogue = epilogue_of(
        quantized,
        bias=bias,
        shift=shift,
        residual=residual,
        relu=relu,
        clip=clip,
        operations=operations,
        channels=OC,
    )
    data, weight = input_of(epilogue, (N, IC), "data"), weights_of(epilogue, (OC, IC), "weight")
    parameters = {"N": N, "IC": IC, "OC": OC} | parameters_of(epilogue, bias)
    return _matrix_product("dense", "out", data, weight, (False, True), epilogue, bias, parameters)


def epilogue_of(
    quantized: object, *, bias: bool, channels: int, has_second_zero: bool = False, **others: Any
) -> Epilogue | Quantized:
    """Raise a ShapeError if the arguments do not fit together.

    ``has_second_zero`` says whether the second operand may be uint8 or have a zero point.
    """
    if quantized is None:
        return Epilogue(bias=bias, **others)
    check_flag("bias", bias)
    if not isinstance(quantized, Quantized):
        raise ShapeError(f"quantized is {quantized!r}; it must be an accel.Quantized")
    if others.pop("operations", ()):
        raise ShapeError(
            "operations and quantized are given; the store unit requantizes sums, and the ALU has the "
            "operations: give shift and clip instead of a scale"
        )
    for name, value in others.items():
        if name == "relu" and value is True:
            low, high = quantized.output_zero, 127 if quantized.output_dtype == "int8" else 255
            raise ShapeError(
                "relu is True and a scale is given; a clip that starts at the zero point does the same: "
                f"--clip {low},{high}, or clip=({low}, {high}) of accel.Quantized"
            )
        if value is not None and value is not False:
            raise ShapeError(
                f"{name} is {value!r} and quantized is given; put scale, clip and residual into quantized"
            )
    quantized.check_channels(channels)
    if quantized.has_centered_weights and not has_second_zero:
        raise ShapeError(
            f"weight_zero is {quantized.weight_zero} and weight_dtype {quantized.weight_dtype!r}; only gemm "
            "has a second operand with a zero point"
        )
    if bias and quantized.is_empty:
        raise ShapeError("output_dtype is 'int32', which keeps the sums; they have no bias")
    return quantized


def input_of(epilogue: Epilogue | Quantized, shape: tuple[int, ...], name: str) -> Tensor:
    """Return a layer's input, minus any zero point."""
    return (
        epilogue.input(shape, name)[1] if isinstance(epilogue, Quantized) else placeholder(shape, name=name)
    )


def weights_of(epilogue: Epilogue | Quantized, shape: tuple[int, ...], name: str) -> Tensor:
    if isinstance(epilogue, Quantized):
        return epilogue.weights(shape, name)
    return placeholder(shape, name=name)


def has_two_zeros(workload: Workload) -> bool:
    """Whether both operands of a product have nonzero zero points, so that bytes after their ends count."""
    quantized = workload.epilogue
    return isinstance(quantized, Quantized) and quantized.input_zero != 0 and quantized.weight_zero != 0


def parameters_of(epilogue: Epilogue | Quantized, bias: bool) -> dict[str, Any]:
    return {"bias": bool(bias)} | epilogue.to_dict()


def _matrix_product(
    workload: str,
    name: str,
    A: Tensor,
    B: Tensor,
    transposed: tuple[bool, bool],
    epilogue: Epilogue | Quantized,
    bias: bool,
    parameters: dict[str, Any],
) -> Workload:
    M, K = A.shape[:-3:-1] if transposed[0] else A.shape[-2:]
    N = B.shape[-2] if transposed[1] else B.shape[-1]
    k = reduce_axis((0, K), name="k")

    def product(at: tuple[IterVar, ...], y: IterVar, x: IterVar) -> Expr:
        left, right = (k, y) if transposed[0] else (y, k), (x, k) if transposed[1] else (k, x)
        return sum(A[(*at, *left)] * B[(*at, *right)], axis=k)

    def one(y: IterVar, x: IterVar) -> Expr:
        return product((), y, x)

    def one_of_several(b: IterVar, y: IterVar, x: IterVar) -> Expr:
        return product((b,), y, x)

    return with_epilogue(
        workload,
        (*A.shape[:-2], M, N),
        one if len(A.shape) == 2 else one_of_several,
        epilogue,
        parameters,
        bias=bias,
        result=name,
        channel_axis=len(A.shape) - 1,
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
    channel_axis: int = 1,
) -> Workload:
    """Bias, residual and operands of operations are inputs of the workload.

    ``total`` returns the sum of an element. Its parameters name the axes. The int32 bias and operands have
    the dimension ``channel_axis`` of ``shape``.
    """
    channels = (shape[channel_axis],)
    added = placeholder(channels, "int32", name="bias") if bias else None
    count = epilogue.channel_operands if isinstance(epilogue, Epilogue) else 0
    operands = tuple(placeholder(channels, "int32", name=f"operand{number}") for number in range(count))
    residual, dtype, per_channel = None, "int8", False
    if isinstance(epilogue, Quantized):
        dtype = epilogue.dtype
        if epilogue.residual is not None:
            per_channel = epilogue.residual.per_channel
            sizes = _channel_shape(name, shape) if per_channel else shape
            residual = placeholder(sizes, epilogue.residual.dtype, name="residual")
    elif epilogue.residual:
        residual = placeholder(shape, name="residual")

    def after(value: Expr, at: tuple[IterVar, ...]) -> Expr:
        channel = at[channel_axis]
        where: tuple[Expr | int, ...] = (*at[:2], *(0 for _ in at[2:])) if per_channel else at
        elements = None if added is None else added[channel], None if residual is None else residual[where]
        if isinstance(epilogue, Quantized):
            return epilogue.apply(value, channel, *elements)
        return epilogue.apply(value, *elements, [one[channel] for one in operands])

    sums, output = sums_and_result(shape, total, None if epilogue.is_empty else after, result, dtype)
    return Workload(
        name=name,
        output=output,
        sums=sums,
        bias=added,
        residual=residual,
        epilogue=epilogue,
        parameters=parameters,
        operands=operands,
    )


def _channel_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) < 4:
        raise ShapeError(
            f"residual_per_channel is True; {name} returns a matrix, and only pictures can have it"
        )
    return (*shape[:2], *(1 for _ in shape[2:]))


def sums_and_result(
    shape: tuple[int, ...],
    total: Callable[..., Expr],
    after: Callable[[Expr, tuple[IterVar, ...]], Expr] | None,
    result: str = "out",
    dtype: str = "int8",
) -> tuple[Tensor, Tensor]:
    """Return the sums and the result, which without an epilogue are one tensor of low bytes.

    ``total`` is as in :func:`with_epilogue`. ``after`` returns the result from the sum and the indices.
    """
    if after is None:
        sums = compute(shape, total, name=result, dtype=dtype)
        return sums, sums
    named = compute(shape, total, name=result).op  # errors contain the result's name
    sums = replace(named, name="S").tensor

    @wraps(total)  # for the names of the axes
    def element(*at: IterVar) -> Expr:
        return after(sums[at], at)

    return sums, compute(shape, element, name=result, dtype=dtype)

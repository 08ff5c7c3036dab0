"""The store unit's parameters, which the host packs: each channel's bias and scale."""

from collections.abc import Callable

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import Finished, StoreLookUp, taken_apart
from accel.compiler.expr.linear_expressions import bounds
from accel.compiler.expr.quantized_expressions import Parameter
from accel.compiler.expr.scalar_expressions import (
    INT32_MAX,
    INT32_MIN,
    Binary,
    Cast,
    Const,
    Expr,
    IterVar,
    Read,
    Sum,
    format_expr,
)
from accel.compiler.expr.tensor_expressions import Tensor, sum_limit
from accel.compiler.target.alu_epilogue import simplified
from accel.compiler.target.store_epilogue import NO_BIAS, StorePath, store_path


def store_unit_epilogue(
    name: str, body: Expr, sum_in: Callable[[object], Sum | None]
) -> tuple[Read, StorePath]:
    """Return the sums that a stage reads, and how the store unit computes the stage from them.

    ``sum_in`` returns the sum that another stage computes for a tensor, or None.
    """
    finished = body.value if isinstance(body, Cast) else body
    apart = taken_apart(finished)
    if apart is None:
        raise ScheduleError(f"{name} is {format_expr(finished)}; it must be an operator's epilogue")
    root, ops = apart
    total = sum_in(root.tensor)
    path = store_path(simplified(ops), sum_limit(total))
    if total is None or path is None:
        raise ScheduleError(
            f"{name} is {format_expr(finished)}; the store unit cannot compute that exactly: use the alu"
        )
    return root, path


def parameter_channels(
    name: str, axis: tuple[IterVar, ...], path: StorePath, block: object
) -> tuple[int, Expr]:
    """Return the number of channels with parameters, and the index of an element's parameters.

    For example, 64 channels without a bias and with one scale need only the 16 parameters ``o % 16`` with
    ``block=16``.
    """
    bias = path.bias
    has_one_scale = len(path.words) == 1
    channel = path.channel if bias is None else bias.indices[0]
    if channel is None or (has_one_scale and bias is None and channel not in axis):
        channel = axis[min(1, len(axis) - 1)]
    if not has_one_scale and path.channel != channel:
        raise ScheduleError(f"{name} takes bias and scale of different channels")
    count = bounds(channel)[1] + 1 if bias is None else bias.tensor.shape[0]
    if block is None:
        return count, channel
    alike, size = bias is None and has_one_scale, plain_integer(block)
    if not alike or size is None or not 1 <= size <= count:
        raise ScheduleError(
            f"the block of {name} has {block!r} parameters; 1 to {count} are possible where all "
            f"channels have the same"
        )
    return size, channel if size == count else Binary("%", channel, Const(size))


def parameter_element(path: StorePath, axes: tuple[IterVar, IterVar]) -> Expr:
    """Return the bias or scale (column ``axes[1]``) of channel ``axes[0]``."""
    channel, column = axes
    preparation = path.preparation
    return Parameter(
        NO_BIAS if path.bias is None else Read(path.bias.tensor, (channel,)),
        channel,
        column,
        (INT32_MIN, INT32_MAX) if preparation is None else preparation.bounds,
        0 if preparation is None else preparation.offset,
        path.words,
    )


def store_look_up(name: str, body: Expr) -> StoreLookUp:
    finished = body.value if isinstance(body, Cast) else body
    ops = finished.ops if isinstance(finished, Finished) else ()
    found = next((op for op in ops if isinstance(op, StoreLookUp)), None)
    if found is None:
        raise ScheduleError(f"{name} has no look-up for the store unit; call pack_parameters before")
    return found


def with_table(body: Expr, look_up: StoreLookUp, table: Tensor) -> Expr:
    finished = body.value if isinstance(body, Cast) else body
    assert isinstance(finished, Finished)
    placed = replace(look_up, operand=table[0, 0])
    changed = replace(finished, ops=tuple(placed if op is look_up else op for op in finished.ops))
    return Cast(changed, body.to) if isinstance(body, Cast) else changed

"""The cost of a workload's epilogue: ALU passes, or requantization in the store unit."""

from math import prod

from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.compiler.target.builtin_emitters import missing_operations, overwrites
from accel.core.alu_operations import find_operation
from accel.core.config import Config


class EpilogueCost(Struct, frozen=True, kw_only=True):
    """The operations of a workload other than its products.

    Attributes:
        passes: operations on each accumulator, with the reset.
        slots: slots of these operations, some of which take several.
        reset_passes: passes before the products, 0 or 1.
        folds_bias: whether the reset also adds the bias.
        in_store: whether the store unit requantizes the sums, with parameters from PAR.
    """

    passes: int
    slots: int
    reset_passes: int
    folds_bias: bool
    in_store: bool
    shares_parameters: bool = False


def epilogue_cost(workload: Workload, config: Config, sum_length: int) -> EpilogueCost:
    folds_bias, passes = workload.epilogue.folds(sum_length), workload.epilogue.passes(sum_length)
    if has_store_epilogue(workload, config):
        shares = shared_parameter_block(workload, config) is not None
        return EpilogueCost(
            passes=0, slots=0, reset_passes=0, folds_bias=False, in_store=True, shares_parameters=shares
        )
    operations = map(find_operation, workload.epilogue.alu_operations())
    further_slots = sum(one.slots(config) - 1 for one in operations)
    if overwrites(config):
        passes += folds_bias - 1
        slots = passes + further_slots
        return EpilogueCost(passes=passes, slots=slots, reset_passes=0, folds_bias=False, in_store=False)
    slots = passes + further_slots
    return EpilogueCost(passes=passes, slots=slots, reset_passes=1, folds_bias=folds_bias, in_store=False)


def has_store_epilogue(workload: Workload, config: Config) -> bool:
    """Raise a ScheduleError or TensorizeError if the machine cannot."""
    if isinstance(workload.epilogue, Quantized) and not config.post:
        raise ScheduleError(
            f"{workload.name} is quantized by scales and zero points; configuration {config.name!r} has "
            f"post=0 and only shifts sums: give shift=N instead of quantized, or take a machine with post=1, "
            f"as 'vta-int8'"
        )
    if isinstance(workload.epilogue, Quantized):
        _check_residual(workload.epilogue, workload.name, config)
    sum_length = prod(axis.extent for axis in workload.reduce_axes)
    if config.post and workload.sums is not workload.output and workload.epilogue.stored(sum_length):
        return True
    _check_alu_operations(workload, config)
    return False


def _check_alu_operations(workload: Workload, config: Config) -> None:
    needed = [name for name in workload.epilogue.alu_operations() if name not in config.operation_codes]
    if needed:
        raise missing_operations(needed, config)


def _check_residual(epilogue: Quantized, name: str, config: Config) -> None:
    residual = epilogue.residual
    if residual is not None and residual.requires_res_mul and not config.res_mul:
        what = "multiplies by a residual" if residual.operation == "multiply" else "adds a value per channel"
        raise ScheduleError(
            f"{name} {what}; configuration {config.name!r} has res_mul=0: take a machine with res_mul=1"
        )


def has_channel_residual(workload: Workload) -> bool:
    residual = workload.residual
    return residual is not None and residual.shape != workload.output.shape


def stored_element_bytes(workload: Workload, config: Config) -> int:
    return config.acc_element_bytes if workload.output.dtype == "int32" else config.out_element_bytes


def shared_parameter_block(workload: Workload, config: Config) -> int | None:
    """Return the channels of one block of requantization parameters that all blocks repeat, or None.

    That needs one scale for all channels, no bias, and more than one block.
    """
    epilogue, block = workload.epilogue, config.block_out
    has_one_scale = not isinstance(epilogue, Quantized) or len(epilogue.scales) == 1
    has_more_blocks = workload.channels > block
    return block if workload.bias is None and has_one_scale and has_more_blocks else None


def can_add_by_product(config: Config) -> bool:
    """Whether the GEMM core can add a tensor to sums, by an identity matrix as a block."""
    return config.block_in == config.block_out

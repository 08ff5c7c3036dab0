"""Groups of a convolution that fill the blocks of the GEMM core."""

from msgspec import Struct

from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.grouped_computations import groups_to_merge
from accel.core.config import Config
from accel.core.fault_causes import most_taps


class MergedGroups(Struct, frozen=True, kw_only=True):
    """Groups of channels that were merged until they fill blocks.

    For example, with blocks of 16, 12 groups of 4 channels become 3 groups of 16, with zero weights between
    original groups.

    Attributes:
        together: original groups in each merged group, fewer in the last one.
    """

    together: int
    count: int
    outputs: int
    inputs: int

    def is_diagonal(self, config: Config) -> bool:
        """Return whether each of several groups is one block of outputs and one block of inputs."""
        return self.count > 1 and (self.outputs, self.inputs) == (config.block_out, config.block_in)


def merged_groups(workload: Workload, config: Config) -> MergedGroups:
    """Each channel of a mean is one group."""
    _, channels, _, _ = workload.output.shape
    count = workload.parameters.get("groups", 1 if workload.is_product else channels)
    outputs, inputs = channels // count, workload.data.tensor.shape[1] // count
    together = groups_to_merge(count, outputs, inputs, (config.block_out, config.block_in))
    return MergedGroups(
        together=together,
        count=-(-count // together),
        outputs=outputs * together,
        inputs=inputs * together,
    )


def taps_at_once(workload: Workload, config: Config) -> int:
    """Return the columns of the kernel that a depthwise MAC multiplies in one slot, or 0 without such MACs.

    They need a bank of ``inp`` for each column, several columns, and no dilation.
    """
    sizes = workload.parameters
    if workload.name != "conv2d" or not config.depthwise:
        return 0
    columns, dilation = sizes["kernel"][1], sizes["dilation"][1]
    is_depthwise = sizes["groups"] == sizes["IC"] == sizes["OC"]
    return columns if is_depthwise and dilation == 1 < columns <= most_taps(1, config) else 0

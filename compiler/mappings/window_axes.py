"""One axis of a picture under sliding windows, split into strips, steps and blocks.

The output position is ``(strip * length + step) * block + within``. Strips become pictures of the batch,
steps remain positions, and the positions within a block become channels. The input is split alike: each
step's own input positions become input channels, and the kernel keeps the taps that reach into other steps.
With a window of 3 taps:

====================  =====================================================================
stride 1, packed      the 3 values of a window become channels, and one tap is left
stride 1, block 4     4 input positions become channels, and 2 taps are left: windows reach
                      into the next block
stride 2, strips 2    two halves of the axis, which overlap by the positions that windows share
====================  =====================================================================
"""

from msgspec import Struct


class WindowAxis(Struct, frozen=True, kw_only=True):
    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    outputs: int


class AxisSplit(Struct, frozen=True, kw_only=True):
    """A split axis.

    Attributes:
        packed: whether all input positions that a block's windows need become channels of one step.
    """

    axis: WindowAxis
    strips: int = 1
    block: int = 1
    packed: bool = False

    @property
    def is_plain(self) -> bool:
        return self.strips == 1 and self.block == 1 and not self.packed

    @property
    def is_possible(self) -> bool:
        axis = self.axis
        return (self.block == 1 or axis.dilation == 1) and (self.strips - 1) * self.length < axis.outputs

    @property
    def is_single_product(self) -> bool:
        """Whether one output of a strip and one input position remain."""
        return self.size == self.taps == self.length == 1 and self.padding[0] == 0

    @property
    def length(self) -> int:
        """Steps of a strip."""
        return -(-self.axis.outputs // (self.strips * self.block))

    @property
    def window_extent(self) -> int:
        """Input positions that the windows of a block span."""
        axis = self.axis
        return (self.block - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1

    @property
    def step_stride(self) -> int:
        """Input positions from one step's windows to the next's."""
        return self.axis.stride * self.block

    @property
    def input_channels(self) -> int:
        if self.packed:
            return self.axis.taps if self.block == 1 else self.window_extent
        return self.step_stride if self.block > 1 else 1

    @property
    def channel_spacing(self) -> int:
        """Distance in the input of neighbouring positions that become channels."""
        return self.axis.dilation if self.packed and self.block == 1 else 1

    @property
    def taps(self) -> int:
        if self.packed:
            return 1
        return -(-self.window_extent // self.step_stride) if self.block > 1 else self.axis.taps

    @property
    def stride(self) -> int:
        return 1 if self.packed or self.block > 1 else self.axis.stride

    @property
    def dilation(self) -> int:
        return 1 if self.packed or self.block > 1 else self.axis.dilation

    @property
    def padding(self) -> tuple[int, int]:
        """Padding that the machine adds, not the host."""
        return (self.axis.before, self.axis.after) if self.is_plain else (0, 0)

    @property
    def size(self) -> int:
        """Remaining input positions."""
        if self.is_plain:
            return self.axis.size
        return (self.length - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def position_spacing(self) -> int:
        """Distance in the user's input of neighbouring remaining positions."""
        return self.step_stride if self.packed or self.block > 1 else 1

    @property
    def host_padding(self) -> int:
        return 0 if self.is_plain else self.axis.before

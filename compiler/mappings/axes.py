"""One axis of a picture under a convolution's windows, taken apart: strips, steps within them, and lanes.

An output's place along an axis is ``(strip * length + step) * block + within``. Strips lie side by side in
the batch, steps remain an axis of the picture, and the places within a block become channels. What windows
see of the input comes apart alike: each step has *lanes* of its own, which become input channels, and the
kernel is left with the taps that reach into other steps.

    taps 3, stride 1, block 1, packed:     lanes are the 3 values of a window; no taps are left
    taps 3, stride 1, block 4:             4 lanes, 2 taps: a block's windows reach into the next block
    taps 3, stride 2, strips 2:            lanes are single values; strips overlap by what windows share
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Windows along one axis.

    Attributes:
        size: of the input.
        taps, stride, dilation: of the windows.
        before, after: what is filled in around the input.
        outputs: windows.
    """

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    outputs: int


@dataclass(frozen=True, kw_only=True)
class Parts:
    """An axis taken apart.

    Attributes:
        axis: which.
        strips: side by side in the batch.
        block: neighbouring outputs that are channels of one place.
        packed: whether all that a block's windows see is in the lanes of one step.
    """

    axis: Axis
    strips: int = 1
    block: int = 1
    packed: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the axis stays as it is."""
        return self.strips == 1 and self.block == 1 and not self.packed

    @property
    def is_possible(self) -> bool:
        """Whether blocks' windows are made of neighbours, and no strip is without outputs."""
        axis = self.axis
        return (self.block == 1 or axis.dilation == 1) and (self.strips - 1) * self.length < axis.outputs

    @property
    def length(self) -> int:
        """Steps of a strip."""
        return -(-self.axis.outputs // (self.strips * self.block))

    @property
    def seen(self) -> int:
        """Places of the input from the first to the last one that the windows of a block see."""
        axis = self.axis
        return (self.block - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1

    @property
    def pitch(self) -> int:
        """Places of the input from one step's windows to the next one's."""
        return self.axis.stride * self.block

    @property
    def lanes(self) -> int:
        """Values of the input that are channels of one place."""
        if self.packed:
            return self.axis.taps if self.block == 1 else self.seen
        return self.pitch if self.block > 1 else 1

    @property
    def lane_step(self) -> int:
        """Places of the input from one lane to the next."""
        return self.axis.dilation if self.packed and self.block == 1 else 1

    @property
    def taps(self) -> int:
        """Of the kernel that is left."""
        if self.packed:
            return 1
        return -(-self.seen // self.pitch) if self.block > 1 else self.axis.taps

    @property
    def stride(self) -> int:
        """Of the windows that are left."""
        return 1 if self.packed or self.block > 1 else self.axis.stride

    @property
    def dilation(self) -> int:
        """Of the windows that are left."""
        return 1 if self.packed or self.block > 1 else self.axis.dilation

    @property
    def padding(self) -> tuple[int, int]:
        """What the machine fills in around what is left; the host does elsewhere."""
        return (self.axis.before, self.axis.after) if self.is_plain else (0, 0)

    @property
    def size(self) -> int:
        """Places of the input that are left."""
        if self.is_plain:
            return self.axis.size
        return (self.length - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def place_step(self) -> int:
        """Places of the user's input from one of those that are left to the next."""
        return self.pitch if self.packed or self.block > 1 else 1

    @property
    def before(self) -> int:
        """What the host fills in in front."""
        return 0 if self.is_plain else self.axis.before

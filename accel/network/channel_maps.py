"""Channel maps: which channel lies in each lane of a tensor's blocks.

Moves between channels need no instruction if only the map changes. For example, with blocks of 16:

    Concat of 20 and 16 channels    lanes 0..19, 12 holes, lanes 20..35
    Slice of channels 8..19         lanes 8..19 of the same blocks
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

ZERO, UNUSED = -1, -2
"""Lanes without a channel hold the zero point, or unread values."""


class ChannelMap(Struct, frozen=True, dict=True):
    """The channel of each lane, or :data:`ZERO` or :data:`UNUSED`."""

    lanes: tuple[int, ...]

    @classmethod
    def plain(cls, channels: int, block: int) -> "ChannelMap":
        return cls((*range(channels), *[ZERO] * (-channels % block)))

    @cached_property
    def positions(self) -> dict[int, int]:
        return {channel: lane for lane, channel in enumerate(self.lanes) if channel >= 0}

    @property
    def is_plain(self) -> bool:
        return self.lanes == tuple(range(len(self.lanes)))

    def agrees(self, other: "ChannelMap") -> bool:
        return len(self.lanes) == len(other.lanes) and self.positions == other.positions

    def lanes_of(self, channels: int) -> tuple[int, ...]:
        return tuple(self.positions[channel] for channel in range(channels))

    def taken(self, indices: Sequence[int], block: int) -> tuple["ChannelMap", int] | None:
        """Take channels by index, in the fewest blocks that hold them.

        Returns:
            The new map, and its first lane in this map. None if a channel is taken twice.
        """
        if len(set(indices)) < len(indices):
            return None
        new_channel = {channel: number for number, channel in enumerate(indices)}
        lanes = [channel if channel < 0 else new_channel.get(channel, UNUSED) for channel in self.lanes]
        used = [lane for lane, channel in enumerate(lanes) if channel >= 0]
        first, stop = used[0] // block * block, -(-(used[-1] + 1) // block) * block
        return ChannelMap(tuple(lanes[first:stop])), first

    def padded(self, begin: int, end: int) -> "ChannelMap | None":
        """Add channels of zeros at both ends in unchanged lanes, or return None if too few lanes are zero."""
        channels = len(self.positions)
        new = [*range(begin), *range(begin + channels, begin + channels + end)]
        free = [lane for lane, channel in enumerate(self.lanes) if channel == ZERO]
        if len(free) < len(new):
            return None
        lanes = [channel + begin if channel >= 0 else channel for channel in self.lanes]
        for lane, channel in zip(free, new, strict=False):
            lanes[lane] = channel
        return ChannelMap(tuple(lanes))

    def gathered_squares(self, count: int) -> "ChannelMap":
        """Return the map after SpaceToDepth: the lanes of ``count`` pixels in sequence."""
        channels = len(self.positions)
        return ChannelMap(
            tuple(
                channel + pixel * channels if channel >= 0 else channel
                for pixel in range(count)
                for channel in self.lanes
            )
        )

    def unused_instead_of_zero(self) -> "ChannelMap":
        return ChannelMap(tuple(UNUSED if channel == ZERO else channel for channel in self.lanes))

    def __str__(self) -> str:
        return f"{len(self.positions)} channels in {len(self.lanes)} lanes"


def concatenated(maps: Iterable[ChannelMap]) -> ChannelMap:
    lanes: list[int] = []
    before = 0
    for one in maps:
        lanes += [channel + before if channel >= 0 else channel for channel in one.lanes]
        before += len(one.positions)
    return ChannelMap(tuple(lanes))


def common(maps: Sequence[ChannelMap]) -> ChannelMap:
    """Return the result's map for operands whose maps agree."""
    lanes = (
        lanes[0] if len(set(lanes)) == 1 else max(lanes) if max(lanes) >= 0 else UNUSED
        for lanes in zip(*(one.lanes for one in maps), strict=True)
    )
    return ChannelMap(tuple(lanes))

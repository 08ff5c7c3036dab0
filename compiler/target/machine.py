"""A machine as schedules see it: configuration, memory scopes and intrinsics."""

import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from accel.base.errors import ConfigError, ScheduleError, nearest
from accel.base.html_summary import Bar, html_summary
from accel.compiler.target.intrinsic_declaration import (
    AluIntrin,
    CopyIntrin,
    Intrinsic,
    StoreIntrin,
    TensorIntrin,
)
from accel.compiler.target.memory_scope import Scope, scopes
from accel.core.config import NAMED, Config, load_config
from accel.core.isa import check_encodable
from accel.core.scratchpad_specs import scratchpads_of


def _intrinsics() -> ModuleType:
    from accel.compiler.target import machine_intrinsics  # only schedules use them

    return machine_intrinsics


@dataclass(frozen=True)
class Machine:
    """A machine for schedules.

    ``tensorize`` takes its intrinsics, such as ``m.gemm``, and the cache operators its scopes, such as
    ``m.inp_buffer``.
    """

    config: Config

    def __repr__(self) -> str:
        return f"Machine({self.config.label}, {self.config.macs_per_cycle} MACs per cycle)"

    def _repr_html_(self) -> str:
        config = self.config
        rows = [
            ("configuration", config.label),
            ("MACs per cycle", f"{config.macs_per_cycle:,}"),
            ("bus", f"{config.bus_bytes} bytes per cycle"),
        ]
        sizes = {
            name: pad.depth(config) * pad.element_bytes(config)
            for name, pad in scratchpads_of(config).items()
        }
        most = max(sizes.values())
        bars = [Bar(f"{name} scratchpad", size / most, f"{size:,} bytes") for name, size in sizes.items()]
        return html_summary("Machine", rows, bars)

    @property
    def inp_buffer(self) -> Scope:
        """Scratchpad of GEMM's first operand, int8[batch][block_in] elements."""
        return scopes(self.config)["inp_buffer"]

    @property
    def wgt_buffer(self) -> Scope:
        """Scratchpad of GEMM's second operand, int8[block_out][block_in] elements."""
        return scopes(self.config)["wgt_buffer"]

    @property
    def acc_buffer(self) -> Scope:
        """Scratchpad of sums, int32[batch][block_out] elements."""
        return scopes(self.config)["acc_buffer"]

    @property
    def par_buffer(self) -> Scope:
        """Scratchpad of the store unit's parameters, int32[block_out][2] elements: each channel's bias and
        scale.

        Raises:
            ScheduleError: the machine has ``post=0``.
        """
        return self.scope("par_buffer")

    @property
    def tab_buffer(self) -> Scope:
        """Scratchpad of tables, uint8[1][256] elements.

        Raises:
            ScheduleError: the machine has no tables.
        """
        if not self.config.tab_bytes:
            raise ScheduleError(
                f"machine {self.config.name!r} has tab_bytes=0, so it has no tables of functions"
            )
        return self.scope("tab_buffer")

    @property
    def gemm(self) -> TensorIntrin:
        """Matrix product of one block, also named with its size: ``m.gemm8x8``."""
        found: TensorIntrin = _intrinsics().gemm(self.config)
        return found

    @property
    def depthwise(self) -> TensorIntrin:
        """Sums of a row of a kernel, channel by channel.

        Raises:
            ScheduleError: the machine lacks ``post=1`` or equal ``block_in`` and ``block_out``.
        """
        if not self.config.depthwise:
            raise ScheduleError(
                f"machine {self.config.name!r} has no depthwise MACs; one with post=1 and equal block_in and "
                f"block_out, as 'vta-int8', has"
            )
        found: TensorIntrin = _intrinsics().depthwise(self.config)
        return found

    @property
    def fill_zero(self) -> TensorIntrin:
        """Zero in one accumulator."""
        found: TensorIntrin = _intrinsics().fill_zero(self.config)
        return found

    @property
    def dma_copy2d(self) -> CopyIntrin:
        """Copy between DRAM and a scratchpad."""
        found: CopyIntrin = _intrinsics().dma_copy2d(self.config)
        return found

    @property
    def alu(self) -> AluIntrin:
        """Elementwise operations on accumulators, in place."""
        found: AluIntrin = _intrinsics().alu(self.config)
        return found

    @property
    def post(self) -> StoreIntrin:
        """The store unit's epilogue of accumulators on their way to DRAM.

        Raises:
            ScheduleError: the machine has ``post=0``.
        """
        if not self.config.post:
            raise ScheduleError(
                f"machine {self.config.name!r} has post=0, whose store unit only copies; "
                f"one with post=1, as 'vta-int8', requantizes"
            )
        found: StoreIntrin = _intrinsics().post(self.config)
        return found

    def __getattr__(self, name: str) -> TensorIntrin:
        config = self.__dict__.get("config")  # copying and unpickling ask before it is there
        if config is not None and name == f"gemm{config.block_name}":
            return self.gemm
        raise AttributeError(f"machine {config and config.name!r} has no attribute {name!r}")

    def intrinsic(self, name: str) -> Intrinsic:
        """Return an intrinsic by the name that schedules record.

        Raises:
            ScheduleError: the machine has none. It may be the user's own.
        """
        own: dict[str, Intrinsic] = {
            i.name: i for i in (self.gemm, self.fill_zero, self.dma_copy2d, self.alu)
        }
        if self.config.post:
            own[self.post.name] = self.post
        if self.config.depthwise:
            own[self.depthwise.name] = self.depthwise
        if name not in own:
            raise ScheduleError(
                f"machine {self.config.name!r} has no intrinsic {name!r}; {nearest(name, own)}"
            )
        return own[name]

    def scope(self, name: str) -> Scope:
        """Return a memory scope by name.

        Raises:
            ScheduleError: there is none.
        """
        named = scopes(self.config)
        if name not in named:
            raise ScheduleError(f"machine {self.config.name!r} has no scope {name!r}; {nearest(name, named)}")
        return named[name]


def machine(name_or_path: str | Path | Config | Machine = "vta", **overrides: int | str) -> Machine:
    """Return a machine.

    Args:
        name_or_path: a name that ``accel configs`` lists, the path of a TOML or JSON file (ours or VTA's), a
            configuration or a machine.
        overrides: configuration fields to replace, as ``read_latency=100`` or ``inp_bytes="64KiB"``.

    Raises:
        ConfigError: unknown name or field, bad value, or a configuration that does not fit the instruction
            format.
    """
    if isinstance(name_or_path, Machine):
        config = name_or_path.config
    elif isinstance(name_or_path, Config):
        config = name_or_path
    elif isinstance(name_or_path, str | os.PathLike):
        config = load_config(name_or_path)
    else:
        raise ConfigError(
            f"the machine is {name_or_path!r}; it must be a configuration's name, as 'vta', the path of a "
            f"TOML or JSON file, a Config or a Machine"
        )
    if overrides:
        config = config.variant(overrides)
    check_encodable(config)
    return Machine(config)


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that come with accel, such as ``vta`` and ``vta-int8``."""
    return tuple(NAMED)

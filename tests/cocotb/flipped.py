"""The core with a mask on every output, so that tests can plant violations of bus rules."""

from typing import Any

from amaranth.hdl import Module, Shape
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.hw.bus.axi import manager_ports, subordinate_ports
from accel.hw.core import Core


def ports(config: Config) -> dict[str, Any]:
    return manager_ports(config) | subordinate_ports() | {"irq": Out(1)}


def outputs(config: Config) -> dict[str, int]:
    return {
        name: Shape.cast(member.shape).width for name, member in ports(config).items() if member.flow is Out
    }


class Flipped(wiring.Component):
    """The core. Each output is XORed with the input ``flip_<name>``."""

    def __init__(self, config: Config) -> None:
        self.config = config
        masks = {f"flip_{name}": In(width) for name, width in outputs(config).items()}
        super().__init__(ports(config) | masks)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.core = core = Core(self.config)
        flipped = outputs(self.config)
        for name in ports(self.config):
            if name in flipped:
                m.d.comb += getattr(self, name).eq(getattr(core, name) ^ getattr(self, f"flip_{name}"))
            else:
                m.d.comb += getattr(core, name).eq(getattr(self, name))
        return m

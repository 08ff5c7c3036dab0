"""The core, memory and bridge of a board."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Elaboratable, Module, ResetInserter, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.hw.board.block_ram_memory import AxiMemory
from accel.hw.board.serial_bridge import Bridge
from accel.hw.bus.axi import MANAGER, SUBORDINATE, Axi4, AxiLite, pins
from accel.hw.core import Core


class BoardTop(wiring.Component):
    """The board-independent design: ``rx`` and ``tx`` are the serial line, ``irq`` is the core's interrupt.
    It has one clock and one synchronous reset.

    Args:
        size: bytes of memory.
        cycles: clock cycles of a bit on the line.
    """

    def __init__(self, config: Config, *, size: int, cycles: int) -> None:
        self._config = config
        self._size = size
        self._cycles = cycles
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "irq": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        core, memory = Core(self._config), AxiMemory(self._config, self._size)
        m.submodules.bridge = bridge = Bridge(self._config, self._size, self._cycles)
        m.submodules.core, m.submodules.memory = self.reset(m, bridge.core_reset, core, memory)
        m.d.comb += [bridge.rx.eq(self.rx), self.tx.eq(bridge.tx), self.irq.eq(core.irq)]
        bus, registers = Axi4(self._config), AxiLite()
        wiring.connect(m, pins(core, bus, MANAGER), pins(memory, bus.flip(), MANAGER))
        wiring.connect(m, pins(bridge, registers, SUBORDINATE), pins(core, registers.flip(), SUBORDINATE))
        wiring.connect(m, bridge.service, memory.service)
        return m

    def reset(self, m: Module, reset: Value, *parts: wiring.Component) -> Sequence[Elaboratable]:
        return [ResetInserter(reset)(part) for part in parts]

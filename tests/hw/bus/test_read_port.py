"""The read port compared with the recurrence of the timing contract."""

from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.hw.bus.read_port import ReadPort, readers_of
from accel.hw.datapath.unit_ports import port_of
from tests.hw.bench import run
from tests.thorough import also


@pytest.mark.parametrize(
    ("machine", "outstanding"), [("tiny", 1), also("tiny", 2), also("tiny", 5), ("tiny-int8", 2)]
)
def test_grants_follow_the_recurrence(machine: str, outstanding: int) -> None:
    """Memory accepts every address immediately and answers after ``latency`` cycles."""
    config = replace(NAMED[machine], outstanding=outstanding)
    port, readers = ReadPort(config), readers_of(config)
    latency = 7

    async def bench(context: Any) -> None:
        rng = Random(outstanding)
        context.set(port.arready, 1)
        wanted: dict[Any, int] = {}
        bursts: list[tuple[Any, int, int, int]] = []
        """Unit, first and last cycle on the bus, beats."""
        grants: list[int] = []
        for now in range(800):
            for unit in readers:
                if unit not in wanted and rng.random() < 0.2:
                    wanted[unit] = rng.randint(1, 6)
                context.set(port_of(port, unit).valid, unit in wanted)
                request = port_of(port, unit).request
                context.set(request.beats, wanted.get(unit, 1))
                context.set(request.address, 4096 * now + 64)
            on_bus = next((b for b in bursts if b[1] <= now <= b[2]), None)
            context.set(port.rvalid, on_bus is not None)
            context.set(port.rlast, on_bus is not None and on_bus[2] == now)
            for unit in readers:
                mine = on_bus is not None and on_bus[0] is unit
                assert context.get(port_of(port, unit).beat_valid) == mine
            assert context.get(port.last) == (on_bus is not None and on_bus[2] == now)

            room = len(bursts) < outstanding or bursts[-outstanding][2] < now
            chosen = next((unit for unit in readers if unit in wanted), None) if room else None
            assert context.get(port.grant) == (chosen is not None)
            for unit in readers:
                assert context.get(port_of(port, unit).granted) == (unit is chosen)
            if chosen is not None:
                beats = wanted.pop(chosen)
                first = max(now + latency, bursts[-1][2] + 1 if bursts else 0)
                bursts.append((chosen, first, first + beats - 1, beats))
                grants.append(now)
            await context.tick()
            if chosen is not None:
                assert context.get(port.arvalid)
                assert context.get(port.araddr) == 4096 * now + 64
                assert context.get(port.arlen) == bursts[-1][3] - 1
        assert len(grants) > 50

    run(port, bench)


def test_an_address_is_stable_until_it_is_accepted() -> None:
    port = ReadPort(NAMED["tiny"])

    async def bench(context: Any) -> None:
        context.set(port.load.valid, 1)
        context.set(port.load.request.address, 64)
        context.set(port.load.request.beats, 3)
        await context.tick()
        context.set(port.load.request.address, 128)
        for _ in range(4):
            assert not context.get(port.grant)
            assert (context.get(port.arvalid), context.get(port.araddr)) == (1, 64)
            await context.tick()
        context.set(port.arready, 1)
        assert context.get(port.grant)
        await context.tick()
        assert (context.get(port.arvalid), context.get(port.araddr)) == (1, 128)
        context.set(port.stop, 1)
        assert not context.get(port.grant)

    run(port, bench)

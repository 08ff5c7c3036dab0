"""Changes of the machine that would make a whole network faster.

For geometry fields, the network is compiled again. Changes that move work between machine and host are not
reported, since cycles do not include the host's time.
"""

import time
from collections import Counter
from collections.abc import Iterable

from accel.base.errors import AccelError
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.core.events import Timing
from accel.image.image import Image
from accel.network.chained_program import Chain
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from accel.network.network_result import NetworkResult, layer_cycles
from accel.run.advice_candidates import relief
from accel.run.machine_advice import Advice, AdviceReport, search, timing_of
from accel.run.machine_price import price_text

DEFAULT_SECONDS = 60.0
"""Processor time after which no further trial starts."""


def advise_network(
    program: NetworkProgram, result: NetworkResult, *, seconds: float = DEFAULT_SECONDS
) -> AdviceReport:
    """Find the limits of a ``run(record=True)``, and single changes of the machine that help."""
    path = result.known_path
    if path is None:
        raise AccelError("advice needs a recorded run of the machine, as on 'sim'")
    end = time.process_time() + seconds
    trial = _Trial(program, result)
    return search(program.config, path, trial.try_change, end=end, without=trial.without)


class _Trial:
    """``without`` says why the network cannot be compiled again."""

    def __init__(self, program: NetworkProgram, result: NetworkResult) -> None:
        self._program = program
        self._images: list[Image] = [run.image for run in result.runs]
        self._path = result.known_path or ()
        self._cycles = result.cycles or 0
        self._layers: Counter[str] = Counter()
        for layer in result.layers:
            self._layers[layer.name] += layer.cycles or 0
        self.without = self._why_not_recompiled()

    def try_change(self, field: str, value: int) -> Advice | None:
        """Return None for an impossible change, or if other nodes would run on the host."""
        recompiled = SPECS[field].kind == "geometry"
        chains = self._program.chains
        try:
            config = self._program.config.override({field: value})
            if recompiled:
                program = self._build(config)
                if _host_outputs(program) != _host_outputs(self._program):
                    return None
                chains = program.chains
                runs = [timing_of(chain.program) for chain in chains]
            else:
                runs = [timing_of(image.with_timing(config)) for image in self._images]
        except AccelError:
            return None
        cycles = sum(run.cycles for run in runs)
        gain = self._largest_gain(zip(chains, runs, strict=True))
        return Advice(
            field=field,
            now=int(getattr(self._program.config, field)),
            then=value,
            cycles=cycles,
            speedup=self._cycles / cycles,
            recompiled=recompiled,
            simulated=True,
            reason=relief(field, value, self._path) + gain,
            price=price_text(self._program.config, config),
        )

    def _largest_gain(self, runs: Iterable[tuple[Chain, Timing]]) -> str:
        changed: Counter[str] = Counter()
        for chain, run in runs:
            for part, cycles in zip(chain.layers, layer_cycles(chain, run), strict=True):
                changed[part.fused.name] += cycles or 0
        gains = {name: self._layers[name] - cycles for name, cycles in changed.items() if self._layers[name]}
        if len(gains) < 2:
            return ""
        name = max(gains, key=lambda one: gains[one])
        return f"; {name} gains the most, {gains[name]:,} cycles" if gains[name] > 0 else ""

    def _build(self, config: Config) -> NetworkProgram:
        return Network(graph=self._program.graph).build(machine(config))

    def _why_not_recompiled(self) -> str:
        try:
            again = self._build(self._program.config)
        except AccelError as error:
            return f"the network cannot be compiled again: {error}"
        codes = [[chain.program.code for chain in one.chains] for one in (again, self._program)]
        return "" if codes[0] == codes[1] else "the network was compiled by options, or by another release"


def _host_outputs(program: NetworkProgram) -> set[str]:
    return {
        node.output
        for part in program.parts
        if not part.on_machine and not part.moves_nothing
        for node in part.fused.nodes
    }

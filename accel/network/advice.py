"""What would help a whole network: other values of the machine's fields, with the cycles of all programs.

For a field of the timing the programs stay as they are; for one of the geometry the network is compiled
again. Then the timing of every program is simulated. A change that moves work between machine and host is not
told, since the host's time is in no cycles.
"""

import time
from collections import Counter
from collections.abc import Iterable

from accel.base.errors import AccelError
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.core.events import Timing
from accel.image.image import Image
from accel.network.chain import Chain
from accel.network.network import Network
from accel.network.program import NetworkProgram
from accel.network.result import NetworkResult, layer_cycles
from accel.run.advice import Advice, Advised, search, timing_of
from accel.run.levers import relief

DEFAULT_SECONDS = 60.0
"""Of processor time that the search takes at most, but for the last trial."""


def advise_network(
    program: NetworkProgram, result: NetworkResult, *, seconds: float = DEFAULT_SECONDS
) -> Advised:
    """What bounds a network's run, and which single change of the machine would make it faster.

    Fields of the geometry are tried if the network was compiled as ``accel compile onnx`` does by default.

    Args:
        program: what ran.
        result: of a run of which all that happened was kept (``run(record=True)``).
        seconds: of processor time, after which nothing more is tried.

    Raises:
        AccelError: nothing ran on the machine, or nothing is known of when things happened.
    """
    path = result.critical_path()
    if path is None:
        raise AccelError("advice needs a recorded run of the machine, as on 'sim'")
    end = time.process_time() + seconds
    trial = _Trial(program, result)
    return search(program.config, path, trial.of, end=end, without=trial.without)


class _Trial:
    """A network on other machines.

    Attributes:
        without: why it cannot be compiled again; empty if it can.
    """

    def __init__(self, program: NetworkProgram, result: NetworkResult) -> None:
        self._program = program
        self._images: list[Image] = [run.image for run in result.runs]
        self._path = result.critical_path() or ()
        self._cycles = result.cycles or 0
        self._layers: Counter[str] = Counter()
        for layer in result.layers:
            self._layers[layer.name] += layer.cycles or 0
        self.without = self._other()

    def of(self, field: str, value: int) -> Advice | None:
        """What one change does; None if there is no such machine, the network does not fit it, or other nodes
        would be on the host."""
        recompiled = SPECS[field].kind == "geometry"
        chains = self._program.chains
        try:
            config = self._program.config.override({field: value})
            if recompiled:
                program = self._built(config)
                if _on_host(program) != _on_host(self._program):
                    return None
                chains = program.chains
                runs = [timing_of(chain.program) for chain in chains]
            else:
                runs = [timing_of(image.with_timing(config)) for image in self._images]
        except AccelError:
            return None
        cycles = sum(run.cycles for run in runs)
        return Advice(
            field=field,
            now=int(getattr(self._program.config, field)),
            then=value,
            cycles=cycles,
            speedup=self._cycles / cycles,
            recompiled=recompiled,
            simulated=True,
            reason=relief(field, value, self._path) + self._where(zip(chains, runs, strict=True)),
        )

    def _where(self, runs: Iterable[tuple[Chain, Timing]]) -> str:
        """The layer that gains the most, in words."""
        then: Counter[str] = Counter()
        for chain, run in runs:
            for part, cycles in zip(chain.layers, layer_cycles(chain, run), strict=True):
                then[part.stage.name] += cycles or 0
        gains = {name: self._layers[name] - cycles for name, cycles in then.items() if self._layers[name]}
        if len(gains) < 2:
            return ""
        name = max(gains, key=lambda one: gains[one])
        return f"; {name} gains the most, {gains[name]:,} cycles" if gains[name] > 0 else ""

    def _built(self, config: Config) -> NetworkProgram:
        return Network(graph=self._program.graph).build(machine(config))

    def _other(self) -> str:
        """Why compiling the network again does not give its programs; empty if it does."""
        try:
            again = self._built(self._program.config)
        except AccelError as error:
            return f"the network cannot be compiled again: {error}"
        codes = [[chain.program.code for chain in one.chains] for one in (again, self._program)]
        return "" if codes[0] == codes[1] else "the network was compiled by options, or by another release"


def _on_host(program: NetworkProgram) -> set[str]:
    """What the nodes on the host make."""
    return {
        node.output
        for part in program.parts
        if not part.on_machine and not part.moves_nothing
        for node in part.stage.nodes
    }

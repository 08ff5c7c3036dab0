"""Programs that run one after the other on one machine and hand over tensors in its DRAM.

What a program has written stays there in elements. A program that takes it in the same packing reads it where
it lies; for any other the host unpacks and packs it, which is counted. A session keeps neither programs nor
tensors that nobody else has: their room in DRAM is free for others then.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from accel.base.arguments import check_array, check_path, plain_array
from accel.base.errors import ShapeError
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.link import alignment
from accel.image.references import Part
from accel.run.backends.choose import open_backend
from accel.run.launch import launch
from accel.run.options import RunOptions
from accel.run.program import Program
from accel.run.residents import Residents
from accel.run.result import Result
from accel.run.space import Space
from accel.run.tensors import Packing, SessionTensor, TensorStore
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine

__all__ = ["Packing", "Session", "SessionTensor"]

Array = npt.NDArray[Any]


class Session:
    """One machine and its DRAM, for programs that run one after the other.

    Between programs the machine starts anew, but for what is in DRAM. With ``backend="rtl"`` a session holds
    the hardware in simulation: use it in a ``with`` statement, or call :meth:`close`. After that nothing
    runs, and its tensors' values are gone: take them by ``numpy()`` before.

    Args:
        on: the machine, its configuration or the configuration's name.
        backend: ``sim`` (function and cycles), ``functional`` (function only) or ``rtl`` (the hardware).
        seed: of what is in the scratchpads at the start of a run, and of inputs that are not given.
        engine: what simulates the hardware, see :data:`~accel.hw.engines.choose.ENGINES`.
        wave: of the hardware, a VCD or FST file to write; all runs are in it.
        record: of the hardware, keep :attr:`~accel.run.result.Result.events`; the simulator always does.
        hardware: of the backend ``rtl``, the machine; it stays open. Built if not given.

    Attributes:
        config: the machine.
        results: of the runs, in order. The last one is whole, with outputs if those were compared; of earlier
            ones the session keeps the figures (:meth:`~accel.run.result.Result.summary`). Whoever takes a
            result after its run keeps it whole.
        packing: what the host did.

    Raises:
        ConfigError: there is no such machine.
        AccelError: an unknown backend, an engine or a wave file for another one, or a negative seed.
        EngineError: the engine does not exist or cannot be built.
        ProgramError: the wave file cannot be written.
    """

    def __init__(
        self,
        on: Machine | Config | str,
        *,
        backend: str = "sim",
        seed: int = 0,
        engine: str | None = None,
        wave: str | Path | None = None,
        record: bool = False,
        hardware: "Engine | None" = None,
    ) -> None:
        self._options = RunOptions(
            seed=seed,
            engine=engine,
            wave=None if wave is None else check_path("wave file", wave),
            record=record,
        )
        self.config = machine(on).config
        self._backend = open_backend(backend, self.config, self._options, hardware=hardware)
        self.results: list[Result] = []
        step = alignment(self.config)
        self._dram = Dram.of(self.config)
        space = Space(self.config.mem_size, step)
        self._tensors = TensorStore(self._dram, space, step)
        self._programs = Residents(self.config, self._dram, space)
        self._last: tuple[Result, Image] | None = None
        """The last result, and what its summary is to show of the program."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back DRAM and the hardware, if there is any; what has been measured stays."""
        self._tensors.closed = True
        self._programs.clear()
        self._dram.clear()
        self._backend.close()

    @property
    def packing(self) -> Packing:
        """What the host did."""
        return self._tensors.packing

    @property
    def cycles(self) -> int | None:
        """Of all runs together; None if time was not simulated."""
        cycles = [result.cycles for result in self.results]
        return None if None in cycles else sum(n for n in cycles if n is not None)

    def tensor(self, values: Array) -> SessionTensor:
        """An array of the host's, for several runs; each packing that they take it in is made once.

        Raises:
            ShapeError: it is no array of int8, uint8 or int32, or a masked one.
            AccelError: the session is closed.
        """
        self._tensors.check_open()
        array = plain_array("what a tensor is made of", values, "an int8, uint8 or int32 array")
        if array.dtype.name not in ("int8", "uint8", "int32"):
            raise ShapeError(f"a tensor is made of {array.dtype}; it must be an int8, uint8 or int32 array")
        return self._tensors.of_host(array)

    def run(
        self,
        program: Program,
        inputs: Mapping[str, SessionTensor | Array] | None = None,
        *,
        check: bool = True,
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, SessionTensor]:
        """Run a program; its outputs, by name, stay in DRAM.

        Args:
            program: compiled for a machine of this geometry; it runs with the session's timing.
            inputs: tensors of this session, or arrays, by name; those not given are random.
            check: compare with :meth:`~accel.run.compiled.Compiled.reference`; what that unpacks is not
                counted.
            max_cycles, max_uops: limits.
            progress: of the hardware, called now and then with the cycle.

        Raises:
            AccelError: the session is closed.
            ProgramError: it is no program, one for another machine, cannot be moved, or DRAM is full.
            ShapeError: an input that the program does not have, or of another shape or dtype.
            HardwareError: the hardware breaks a rule.
            MismatchError: the outputs are wrong.
            MachineError, DeadlockError, LimitExceeded: the machine stopped early.
        """
        self._tensors.check_open()
        options = replace(self._options, max_cycles=max_cycles, max_uops=max_uops, progress=progress)
        timed = self._programs.timed(program)
        given = self._inputs(timed, inputs)
        prepared = {t.name for t in timed.tensors if t.preparation is not None and t.role == "input"}
        running = timed.for_values({name: self._tensors.peek(given[name]) for name in prepared})
        before = self.packing.seconds
        resident = self._programs.resident(program, running)
        places, outputs = self._places(running, given)
        placed = resident.placed(places)
        self._backend.reset()
        pads = Scratchpads.random(self.config, self._options.seed)
        done = launch(placed, self._dram, pads, self._backend, options)
        compared = check and running.has_expression and done.error is None
        result = done.result(
            {name: self._tensors.peek(one) for name, one in outputs.items()} if compared else {},
            reference=(lambda: running.reference({n: self._tensors.peek(one) for n, one in given.items()}))
            if compared
            else None,
            compulsory=running.compulsory,
            carried=running.carried,
            pack_seconds=self.packing.seconds - before,
        )
        result.raise_if_stopped()
        self._keep(result, resident.bare)
        result.raise_if_wrong()
        return outputs

    def _keep(self, result: Result, bare: Image) -> None:
        """Note a result; of the one before it only the figures."""
        if self._last is not None and self.results and self.results[-1] is self._last[0]:
            self.results[-1] = self._last[0].summary(self._last[1])
        self.results.append(result)
        self._last = result, bare

    def _inputs(
        self, program: Program, inputs: Mapping[str, SessionTensor | Array] | None
    ) -> dict[str, SessionTensor]:
        """A tensor of this session for every input."""
        known = program.inputs
        given = program.named_inputs(inputs)
        for name, value in given.items():
            if not isinstance(value, SessionTensor):
                given[name] = check_array(name, value, *known[name])
            elif value._store is not self._tensors:
                raise ShapeError(f"{name} is a tensor of another session; give its values, by numpy()")
            elif (value.shape, value.dtype) != known[name]:
                shape, dtype = known[name]
                raise ShapeError(
                    f"{name} is {value.dtype}{list(value.shape)}; it must be {dtype}{list(shape)}"
                )
        random = program.random_inputs(self._options.seed) if known.keys() - given.keys() else {}
        return {
            name: value if isinstance(value, SessionTensor) else self.tensor(value)
            for name, value in (random | given).items()
        }

    def _places(
        self, program: Program, given: Mapping[str, SessionTensor]
    ) -> tuple[dict[Part, int], dict[str, SessionTensor]]:
        """Where a program finds its inputs and leaves its outputs, and those outputs."""
        places: dict[Part, int] = {}
        outputs: dict[str, SessionTensor] = {}
        for tensor in program.tensors:
            part = Part(offset=tensor.offset, nbytes=tensor.nbytes)
            if tensor.role == "input":
                places[part] = self._tensors.offset_for(tensor, given[tensor.name])
            elif tensor.role == "output":
                outputs[tensor.name], places[part] = self._tensors.of_run(tensor)
        return places, outputs

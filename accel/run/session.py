"""Programs that run one after the other on one machine and exchange tensors in its DRAM.

Outputs stay packed in DRAM. The host repacks if the next program needs it. Programs and tensors are freed
with the user's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from accel.base.arguments import check_array, check_path, plain_array
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS
from accel.core.config import Config
from accel.image.dram import Dram
from accel.image.dram_references import Part
from accel.image.image import Image
from accel.image.linker import alignment
from accel.run.backends.open_backend import open_backend
from accel.run.dram_allocator import DramAllocator
from accel.run.execute_program import launch
from accel.run.program import Program
from accel.run.resident_programs import ResidentPrograms
from accel.run.result import Result
from accel.run.run_options import RunOptions
from accel.run.session_tensors import Packing, SessionTensor, TensorStore
from accel.sim.functional.scratchpads import Scratchpads

if TYPE_CHECKING:
    from accel.compiler.target.machine import Machine
    from accel.hw.engines.engine_driver import Engine

__all__ = ["Packing", "Session", "SessionTensor"]

Array = npt.NDArray[Any]


class Session:
    """A machine and its DRAM, for consecutive programs.

    Each program starts on a reset machine with the same DRAM. With ``backend="rtl"`` use a ``with``
    statement, or call :meth:`close`, which discards tensors.

    Args:
        on: the machine, its configuration or its name.
        backend, hardware: see :meth:`~accel.run.program.Program.run`.
        seed, engine, record: see :class:`~accel.run.run_options.RunOptions`.
        wave: VCD or FST file with all runs.

    Attributes:
        results: in order. All but the last become a :meth:`~accel.run.result.Result.summary`, unless the user
            took them.

    Raises:
        ConfigError: there is no such machine.
        AccelError: an unknown backend, an engine or wave file for another backend, or a negative seed.
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
        hardware: Engine | None = None,
    ) -> None:
        self._options = RunOptions(
            seed=seed,
            engine=engine,
            wave=None if wave is None else check_path("wave file", wave),
            record=record,
        )
        from accel.compiler.target.machine import machine  # networks give a configuration

        self.config = on if isinstance(on, Config) else machine(on).config
        self._backend = open_backend(backend, self.config, self._options, hardware=hardware)
        self.results: list[Result] = []
        step = alignment(self.config)
        self._dram = Dram.of(self.config)
        allocator = DramAllocator(self.config.mem_size, step)
        self._tensors = TensorStore(self._dram, allocator, step)
        self._programs = ResidentPrograms(self.config, self._dram, allocator)
        self._last: tuple[Result, Image] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release DRAM and the hardware. Results remain."""
        self._tensors.closed = True
        self._programs.clear()
        self._dram.clear()
        self._backend.close()

    @property
    def packing(self) -> Packing:
        """The work of the host."""
        return self._tensors.packing

    @property
    def cycles(self) -> int | None:
        """Cycles of all runs, or None without simulated time."""
        cycles = [result.cycles for result in self.results]
        return None if None in cycles else sum(n for n in cycles if n is not None)

    def tensor(self, values: Array) -> SessionTensor:
        """Make a tensor from an array.

        Raises:
            ShapeError: not an array of int8, uint8 or int32, or masked.
            AccelError: the session is closed.
        """
        self._tensors.check_open()
        array = plain_array("the tensor's array", values, "an int8, uint8 or int32 array")
        if array.dtype.name not in ("int8", "uint8", "int32"):
            raise ShapeError(f"the tensor's array is {array.dtype}; it must be int8, uint8 or int32")
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
        """Run a program. Its outputs stay in DRAM.

        Args:
            program: of this geometry. The session's timing holds.
            inputs: by name. Missing ones are random.
            check: compare with :meth:`~accel.run.rebuilt_source.Compiled.reference`.
            max_cycles, max_uops, progress: see :class:`~accel.run.run_options.RunOptions`.

        Raises:
            AccelError: the session is closed.
            ProgramError: no program, another machine, not relocatable, or DRAM is full.
            MismatchError: the outputs are wrong.
            ShapeError, HardwareError, MachineError, DeadlockError, LimitExceeded: see ``Program.run``.
        """
        self._tensors.check_open()
        options = replace(self._options, max_cycles=max_cycles, max_uops=max_uops, progress=progress)
        timed = self._programs.timed(program)
        given = self._inputs(timed, inputs)
        prepared = {t.name for t in timed.tensors if t.preparation is not None and t.role == "input"}
        running = timed.for_values({name: self._tensors.peek(given[name]) for name in prepared})
        before = self.packing.seconds
        resident = self._programs.resident(program, running)
        offsets, outputs = self._tensor_offsets(running, given)
        linked = resident.linked_at(offsets)
        self._backend.reset()
        pads = Scratchpads.random(self.config, self._options.seed)
        done = launch(linked, self._dram, pads, self._backend, options)
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
        self._append_result(result, resident.bare)
        result.raise_if_wrong()
        return outputs

    def _append_result(self, result: Result, bare: Image) -> None:
        if self._last is not None and self.results and self.results[-1] is self._last[0]:
            self.results[-1] = self._last[0].summary(self._last[1])
        self.results.append(result)
        self._last = result, bare

    def _inputs(
        self, program: Program, inputs: Mapping[str, SessionTensor | Array] | None
    ) -> dict[str, SessionTensor]:
        known = program.inputs
        given = program.named_inputs(inputs)
        for name, value in given.items():
            if not isinstance(value, SessionTensor):
                given[name] = check_array(name, value, *known[name])
            elif value._store is not self._tensors:
                raise ShapeError(f"{name} is a tensor of another session; pass its values, from numpy()")
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

    def _tensor_offsets(
        self, program: Program, given: Mapping[str, SessionTensor]
    ) -> tuple[dict[Part, int], dict[str, SessionTensor]]:
        offsets: dict[Part, int] = {}
        outputs: dict[str, SessionTensor] = {}
        for tensor in program.tensors:
            part = Part(offset=tensor.offset, nbytes=tensor.nbytes)
            if tensor.role == "input":
                offsets[part] = self._tensors.offset_for(tensor, given[tensor.name])
            elif tensor.role == "output":
                outputs[tensor.name], offsets[part] = self._tensors.of_run(tensor)
        return offsets, outputs

"""Programs as users handle them: save, load, show, check and run."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from accel.base.arguments import check_path
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.view import View
from accel.proof.check import TokenReport
from accel.proof.program import check_program
from accel.run.backends.backend import Execution
from accel.run.backends.choose import BACKENDS, SIMULATORS, check_backend, check_options, open_backend
from accel.run.backends.simulator import Simulator
from accel.run.compiled import Compiled
from accel.run.launch import launch
from accel.run.options import RunOptions
from accel.run.result import Result, TimedResult
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Order
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine

__all__ = ["BACKENDS", "SIMULATORS", "Program", "as_program"]

Inputs = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Program(Compiled):
    """A compiled program; see :class:`accel.image.image.Image` for its parts."""

    def check(self) -> TokenReport:
        """Prove or refute that the program neither deadlocks nor races, before it runs; once is enough."""
        return self._report

    @cached_property
    def _report(self) -> TokenReport:
        return check_program(self)

    # --- running -------------------------------------------------------------------------------------

    @overload
    def run(
        self,
        inputs: Inputs | None = None,
        *,
        backend: Literal["sim", "rtl"] = "sim",
        seed: int = 0,
        check: bool = True,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        stop_at: int | None = None,
        bus_timeout: int = 0,
        engine: str | None = None,
        wave: str | Path | None = None,
        record: bool = False,
        progress: Callable[[int], None] | None = None,
        hardware: "Engine | None" = None,
        **timing: int | str,
    ) -> TimedResult: ...

    @overload
    def run(
        self,
        inputs: Inputs | None = None,
        *,
        backend: str,
        seed: int = 0,
        check: bool = True,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        stop_at: int | None = None,
        bus_timeout: int = 0,
        engine: str | None = None,
        wave: str | Path | None = None,
        record: bool = False,
        progress: Callable[[int], None] | None = None,
        hardware: "Engine | None" = None,
        **timing: int | str,
    ) -> Result: ...

    def run(
        self,
        inputs: Inputs | None = None,
        *,
        backend: str = "sim",
        seed: int = 0,
        check: bool = True,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        stop_at: int | None = None,
        bus_timeout: int = 0,
        engine: str | None = None,
        wave: str | Path | None = None,
        record: bool = False,
        progress: Callable[[int], None] | None = None,
        hardware: "Engine | None" = None,
        **timing: int | str,
    ) -> Result:
        """Run the program.

        Args:
            inputs: arrays by name; those not given are random, see
                :meth:`~accel.run.compiled.Compiled.random_inputs`.
            backend: ``sim`` (function and cycles), ``functional`` (function only) or ``rtl`` (the hardware).
            seed: of random inputs, of what is in the scratchpads at the start, and of a random order.
            check: compare the outputs with :meth:`~accel.run.compiled.Compiled.reference`.
            order: of functional execution, ``program`` or ``random``.
            max_cycles, max_uops: limits.
            stop_at: the cycle in which the run is stopped, if it has not ended. On hardware software does so
                when it sees that the cycle has come, a few cycles later.
            bus_timeout: cycles in which memory owes something and does nothing that end a run; 0: none do.
            engine: what simulates the hardware, see :data:`~accel.hw.engines.choose.ENGINES`.
            wave: of the hardware, a VCD or FST file to write.
            record: of the hardware, keep :attr:`~accel.run.result.Result.events`; the simulator always does.
            progress: of the hardware, called now and then with the cycle.
            hardware: of the backend ``rtl``, the machine, after a reset; it stays open. Built if not given.
            timing: configuration fields to replace for this run, as ``read_latency=100``.

        Returns:
            What the run gave; with its cycles, a :class:`~accel.run.result.TimedResult`, unless the backend
            is ``functional``.

        Raises:
            AccelError: an unknown backend, a negative seed, or options of another backend.
            EngineError: the engine does not exist or cannot be built.
            HardwareError: the hardware breaks a rule.
            ConfigError: a setting that is no timing field, or a bad value.
            ShapeError: an input that the program does not have, or of another shape or dtype.
            MachineError, DeadlockError, LimitExceeded, RunStopped, BusTimeout: the machine stopped early; its
                ``result`` is what is known of the run up to there.
        """
        options = RunOptions(
            seed=seed,
            order=order,
            max_cycles=max_cycles,
            max_uops=max_uops,
            stop_at=stop_at,
            bus_timeout=bus_timeout,
            engine=engine,
            wave=None if wave is None else check_path("wave file", wave),
            record=record,
            progress=progress,
        )
        check_backend(backend, BACKENDS)
        check_options(backend, options, hardware)
        program = self.with_timing(self.config.override(timing, kinds=("timing",))) if timing else self
        program, values = program._with_values(inputs, options.seed)
        with open_backend(backend, program.config, options, hardware=hardware) as opened:
            begin = time.perf_counter()
            dram = program._packed(values)
            pack_seconds = time.perf_counter() - begin
            pads = Scratchpads.random(program.config, options.seed)
            done = launch(program, dram, pads, opened, options)
        begin = time.perf_counter()
        outputs = program._unpack(dram) if done.error is None else {}
        pack_seconds += time.perf_counter() - begin
        result = done.result(
            outputs,
            reference=(lambda: program.reference(values)) if check and program.has_expression else None,
            compulsory=program.compulsory,
            carried=program.carried,
            pack_seconds=pack_seconds,
        )
        result.raise_if_stopped()
        return result

    def execute(
        self,
        dram: Dram,
        pads: Scratchpads,
        *,
        backend: str = "sim",
        hardware: "Engine | None" = None,
        seed: int = 0,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        stop_at: int | None = None,
        bus_timeout: int = 0,
        record: bool = False,
        look: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Execution:
        """Run the program on memories that are there already.

        Args:
            dram: with instructions and data in it, as from :meth:`~accel.image.image.Image.dram`; it is
                changed.
            pads: the scratchpads, which are changed; first they get what ``start`` says.
            backend: one of :data:`BACKENDS`.
            hardware: of the backend ``rtl``, the machine, after a reset; built if not given.
            seed: of a random order.
            order: of functional execution.
            max_cycles, max_uops: limits, if ``start`` has none that is lower.
            stop_at, bus_timeout: see :meth:`run`.
            record: of the hardware, keep events.
            look: of the hardware, have ``pads`` hold at the end what its scratchpads hold.
            progress: of the hardware, called now and then with the cycle.

        Raises:
            AccelError: an unknown backend, or what does not go with it.
            EngineError: the hardware cannot be built.
            HardwareError: the hardware breaks a rule.
        """
        options = RunOptions(
            seed=seed,
            order=order,
            max_cycles=max_cycles,
            max_uops=max_uops,
            stop_at=stop_at,
            bus_timeout=bus_timeout,
            record=record,
            look=look,
            progress=progress,
        )
        with open_backend(backend, self.config, options, hardware=hardware) as opened:
            return opened.execute(self, dram, pads, options)

    def simulate(
        self,
        dram: Dram,
        pads: Scratchpads,
        *,
        timed: bool = True,
        seed: int = 0,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        stop_at: int | None = None,
        bus_timeout: int = 0,
    ) -> Simulation:
        """:meth:`execute` on a simulator, with all that it knows; ``timed`` or function only."""
        options = RunOptions(
            seed=seed,
            order=order,
            max_cycles=max_cycles,
            max_uops=max_uops,
            stop_at=stop_at,
            bus_timeout=bus_timeout,
        )
        return Simulator(timed=timed).simulate(self, dram, pads, options)

    def limits(self, max_cycles: int, max_uops: int) -> tuple[int, int]:
        """Deprecated; the limits given, if ``start`` has none that is lower."""
        warnings.warn("Program.limits goes with the next release", DeprecationWarning, stacklevel=2)
        options = RunOptions(max_cycles=max_cycles, max_uops=max_uops).within(self.start)
        return options.max_cycles, options.max_uops

    # --- inputs and outputs in memory ----------------------------------------------------------------

    def prepared(self, inputs: Inputs | None = None, seed: int = 0) -> "tuple[Program, Dram]":
        """The program as it runs on these inputs, and DRAM with all of it in place.

        Args:
            inputs: arrays by name; those not given are random.
            seed: of random inputs.

        Raises:
            AccelError: a negative seed.
            ShapeError: an input that the program does not have, or of another shape or dtype.
        """
        program, values = self._with_values(inputs, seed)
        return program, program._packed(values)

    def _with_values(self, inputs: Inputs | None, seed: int) -> "tuple[Program, dict[str, npt.NDArray[Any]]]":
        """The program as it runs on these inputs, and a value for each."""
        given = self.checked_inputs(inputs)
        missing = self.inputs.keys() - given.keys()
        values = (self.random_inputs(seed) if missing else {}) | given
        return self.for_values(values), values

    def for_values(self, values: Inputs) -> "Program":
        """The program for these values of its prepared inputs: an unfolded one where one of them is beyond
        what its folded bias can express."""
        refused = any(
            tensor.role == "input"
            and tensor.preparation is not None
            and not tensor.preparation.accepts(values[tensor.name])
            for tensor in self.tensors
        )
        return self._unfolded if refused and self.has_expression else self  # packing says what is wrong

    @cached_property
    def _unfolded(self) -> "Program":
        from accel.compiler.codegen.build import compile_schedule  # noqa: PLC0415  # slow to import
        from accel.compiler.mappings.build import with_views  # noqa: PLC0415  # slow to import

        inner = {tensor.name: tensor.inner_shape for tensor in self.tensors}
        views = self._views()
        known = {
            name: views[name].gather(value, inner[name]) if name in views else value
            for name, value in self._constants().items()
        }
        image = compile_schedule(self.schedule(), self.config, constants=known, fold=False)
        if self.source is not None and self.source.mapped is not None and image.source is not None:
            source = replace(image.source, expression=self.source.expression, mapped=self.source.mapped)
            image = replace(with_views(image, views), source=source)
        return as_program(image)

    def _views(self) -> dict[str, View]:
        """How the host arranges tensors, by their names."""
        return {tensor.name: tensor.view for tensor in self.tensors if tensor.view is not None}

    def _packed(self, values: Inputs) -> Dram:
        """DRAM with the program and its inputs in place."""
        dram = self.dram()
        self._pack(dram, values)
        return dram

    def _pack(self, dram: Dram, values: Inputs) -> None:
        for tensor in self.tensors:
            if tensor.role == "input":
                dram.write(self.config.mem_base + tensor.offset, tensor.pack(values[tensor.name]))

    def _unpack(self, dram: Dram) -> dict[str, npt.NDArray[Any]]:
        outputs = {}
        for tensor in self.tensors:
            if tensor.role == "output":
                raw = dram.read(self.config.mem_base + tensor.offset, tensor.nbytes)
                outputs[tensor.name] = tensor.unpack(raw)
        return outputs


def as_program(image: Image) -> Program:
    """An image with all that can be done to programs."""
    return Program(**{name: getattr(image, name) for name in image.__dataclass_fields__})

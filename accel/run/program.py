"""Compiled programs."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from accel.base.arguments import check_path
from accel.base.errors import ConfigError, ShapeError, nearest
from accel.base.records import replace
from accel.base.run_choices import BACKENDS, DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS, SIMULATORS
from accel.core.config import SPECS
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.tensor_view import View
from accel.proof.check_program import check_program
from accel.proof.token_check import TokenReport
from accel.run.backends.backend import Execution
from accel.run.backends.open_backend import check_backend, check_options, open_backend
from accel.run.backends.simulator_backend import Simulator
from accel.run.execute_program import launch
from accel.run.rebuilt_source import Compiled
from accel.run.result import Result, TimedResult
from accel.run.run_options import RunOptions
from accel.sim.functional.executor import Order
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine

__all__ = ["BACKENDS", "SIMULATORS", "Program", "as_program"]

Inputs = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Program(Compiled):
    """A compiled program."""

    def check(self) -> TokenReport:
        """Prove that the program neither deadlocks nor races, or report why not."""
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
        **values: "int | str | npt.NDArray[Any]",
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
        **values: "int | str | npt.NDArray[Any]",
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
        **values: "int | str | npt.NDArray[Any]",
    ) -> Result:
        """Run the program.

        Args:
            inputs: arrays by name. Missing ones are random.
            backend: ``sim`` (function and cycles), ``functional`` (no cycles) or ``rtl`` (hardware).
            check: compare outputs with :meth:`~accel.run.rebuilt_source.Compiled.reference`.
            seed, order, max_cycles, max_uops, stop_at, bus_timeout, engine, record, progress: see
                :class:`~accel.run.run_options.RunOptions`.
            wave: VCD or FST file to write.
            hardware: for ``rtl``, the machine after a reset. It stays open.
            values: inputs, for example ``A=a``, and timing fields, for example ``read_latency=100``.

        Returns:
            A :class:`~accel.run.result.TimedResult`, unless ``functional``.

        Raises:
            AccelError: an unknown backend, a negative seed, or options for another backend.
            EngineError: the engine does not exist or cannot be built.
            HardwareError: the hardware violates a rule.
            ConfigError: an unknown keyword, or a bad value.
            ShapeError: an unknown input, or another shape or dtype.
            MachineError, DeadlockError, LimitExceeded, RunStopped, BusTimeout: the machine stopped early. The
                error has a ``result``.
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
        timing, named = self._divided(values)
        program = self.with_timing(self.config.override(timing, kinds=("timing",))) if timing else self
        program, arrays = program._with_values({**(inputs or {}), **named} if named else inputs, options.seed)
        with open_backend(backend, program.config, options, hardware=hardware) as opened:
            begin = time.perf_counter()
            dram = program._packed(arrays)
            pack_seconds = time.perf_counter() - begin
            pads = Scratchpads.random(program.config, options.seed)
            done = launch(program, dram, pads, opened, options)
        begin = time.perf_counter()
        outputs = program._unpack(dram) if done.error is None else {}
        pack_seconds += time.perf_counter() - begin
        result = done.result(
            outputs,
            reference=(lambda: program.reference(arrays)) if check and program.has_expression else None,
            compulsory=program.compulsory,
            carried=program.carried,
            pack_seconds=pack_seconds,
        )
        result.raise_if_stopped()
        return result

    def __call__(self, *arrays: npt.NDArray[Any], **values: Any) -> Any:
        """Run the program on inputs in the order of :attr:`inputs`.

        For example, ``program(a, b)`` is ``program.run(A=a, B=b).outputs["C"]``.
        """
        if len(arrays) > len(self.inputs):
            raise ShapeError(f"{len(arrays)} arrays are given; the inputs are {', '.join(self.inputs)}")
        outputs = self.run(dict(zip(self.inputs, arrays, strict=False)), **values).outputs
        return next(iter(outputs.values())) if len(outputs) == 1 else tuple(outputs.values())

    def show(self, stage: str = "tensorized") -> None:
        """Print a stage of the compilation, as ``accel show --stage`` does.

        Raises:
            AccelError: an unknown stage, or a program without the stage.
        """
        from accel.run.stage_listing import stage_text  # brings the compiler

        print(stage_text(self, stage))

    def _divided(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        named = {name: value for name, value in values.items() if name in self.inputs}
        timing = {name: value for name, value in values.items() if name not in named}
        for name in timing:
            if name not in SPECS:
                known = [*self.inputs, *(one for one, spec in SPECS.items() if spec.kind == "timing")]
                raise ConfigError(
                    f"{name!r} is neither an input of the program ({', '.join(self.inputs)}) nor a "
                    f"configuration field; {nearest(name, known)}"
                )
        return timing, named

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
        """Run the program on existing memories.

        Args:
            dram: instructions and data, as from :meth:`~accel.image.image.Image.dram`. Changed.
            pads: changed, first by the contents in ``start``.
            backend, hardware: see :meth:`run`.
            seed, order, max_cycles, max_uops, stop_at, bus_timeout, record, look, progress: see
                :class:`~accel.run.run_options.RunOptions`.

        Raises:
            AccelError, EngineError, HardwareError: see :meth:`run`.
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
        """As :meth:`execute`, but return the whole simulation."""
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
        """Deprecated. Return limits, or those in ``start`` if lower."""
        warnings.warn("Program.limits goes with the next release", DeprecationWarning, stacklevel=2)
        options = RunOptions(max_cycles=max_cycles, max_uops=max_uops).within(self.start)
        return options.max_cycles, options.max_uops

    # --- inputs and outputs in memory ----------------------------------------------------------------

    def prepared(self, inputs: Inputs | None = None, seed: int = 0) -> "tuple[Program, Dram]":
        """Return the program for these inputs, and DRAM with both. Missing inputs are random.

        Raises:
            AccelError, ShapeError: as :meth:`run`.
        """
        program, values = self._with_values(inputs, seed)
        return program, program._packed(values)

    def _with_values(self, inputs: Inputs | None, seed: int) -> "tuple[Program, dict[str, npt.NDArray[Any]]]":
        given = self.checked_inputs(inputs)
        missing = self.inputs.keys() - given.keys()
        values = (self.random_inputs(seed) if missing else {}) | given
        return self.for_values(values), values

    def for_values(self, values: Inputs) -> "Program":
        """Return the program, or without folding if the folded bias cannot express an input."""
        refused = any(
            tensor.role == "input"
            and tensor.preparation is not None
            and not tensor.preparation.accepts(values[tensor.name])
            for tensor in self.tensors
        )
        return self._unfolded if refused and self.has_expression else self  # packing reports the error

    @cached_property
    def _unfolded(self) -> "Program":
        from accel.compiler.codegen.compile_schedule import compile_schedule  # slow to import
        from accel.compiler.mappings.mapped_build import with_views

        inner = {tensor.name: tensor.inner_shape for tensor in self.tensors}
        views = self._views()
        known = {
            name: views[name].gather(value, inner[name]) if name in views else value
            for name, value in self._constants().items()
        }
        image = compile_schedule(
            self.schedule(), self.config, constants=known, fold=False, without=self.passes_off
        )
        if self.source is not None and self.source.mapped is not None and image.source is not None:
            source = replace(image.source, expression=self.source.expression, mapped=self.source.mapped)
            image = replace(with_views(image, views), source=source)
        return as_program(image)

    def _views(self) -> dict[str, View]:
        return {tensor.name: tensor.view for tensor in self.tensors if tensor.view is not None}

    def _packed(self, values: Inputs) -> Dram:
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
    return Program(**{name: getattr(image, name) for name in image.__dataclass_fields__})

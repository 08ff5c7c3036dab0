"""Programs as users handle them: build, save, load, show, check and run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel.compiler.build import check_array, compile_schedule
from accel.compiler.data import expression_from_data
from accel.compiler.default import default_schedule
from accel.compiler.inputs import random_inputs
from accel.compiler.metrics import Compulsory, compulsory
from accel.compiler.reference import evaluate
from accel.compiler.schedule import Schedule, Step, create_schedule
from accel.compiler.steps import apply_steps
from accel.compiler.tensor import Placeholder, Tensor, producers
from accel.compiler.workload import Workload
from accel.config import Config
from accel.dram import Dram
from accel.errors import AccelError, ProgramError, ScheduleError, ShapeError, nearest
from accel.events import Timing
from accel.image import Image
from accel.machines import Machine, machine
from accel.result import Result
from accel.schedules import rethreaded, scheduled
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Order
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation, simulate
from accel.sim.timing.model import DEFAULT_MAX_CYCLES
from accel.tokens import TokenReport, check_tokens

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine

SIMULATORS = ("sim", "functional")
BACKENDS = (*SIMULATORS, "rtl")
"""What runs a program: cycle-level and functional simulator, and the hardware in simulation."""
_WITHOUT_SOURCE = "it can be run, checked, disassembled, and shown at the stages streams and asm"


@dataclass(frozen=True, kw_only=True)
class Program(Image):
    """A compiled program; see :class:`accel.image.Image` for its parts."""

    # --- where it came from ------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensor expression's outputs, rebuilt from the file.

        Raises:
            ProgramError: the program holds no tensor expression, or a damaged one.
        """
        if not self.has_expression:
            raise ProgramError(f"the program holds no tensor expression; {_WITHOUT_SOURCE}")
        assert self.source is not None
        outputs = expression_from_data(self.source["expression"])
        self._check_expression(outputs)
        return outputs

    @property
    def has_expression(self) -> bool:
        """Whether the program holds the tensor expression that it computes."""
        return self.source is not None and self.source.get("expression") is not None

    def schedule(self) -> Schedule:
        """The schedule it was compiled with, rebuilt from the file.

        Raises:
            ProgramError: the program holds none.
            ScheduleError: it uses intrinsics that are not the machine's own.
        """
        schedule = create_schedule(self.outputs)
        steps = (self.source or {}).get("schedule")
        if not isinstance(steps, list):
            raise ProgramError(f"the program holds no schedule; {_WITHOUT_SOURCE}")
        target = Machine(self.config)
        apply_steps(schedule, steps, target.intrinsic, target.scope)
        return schedule

    @property
    def folded(self) -> bool:
        """Whether reset and bias were folded into one step where possible."""
        options = (self.source or {}).get("options")
        return not isinstance(options, dict) or options.get("fold") is not False

    @cached_property
    def compulsory(self) -> Compulsory | None:
        """What the computation takes at least; None if it is not known."""
        return compulsory(self.outputs) if self.has_expression else None

    def random_inputs(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """A value for every input, drawn so that the result seldom saturates; without a tensor expression
        all values are equally likely.

        Raises:
            AccelError: the seed is negative.
        """
        _check_seed(seed)
        if not self.has_expression:
            rng = np.random.default_rng(seed)
            bounds = {dtype: np.iinfo(dtype) for dtype in ("int8", "int32")}
            return {
                name: rng.integers(bounds[dtype].min, bounds[dtype].max, shape, dtype, endpoint=True)
                for name, (shape, dtype) in self._inputs().items()
            }
        constants = {t.name for t in self.tensors if t.role == "constant"}
        drawn = random_inputs(self.outputs, seed)
        return {name: value for name, value in drawn.items() if name not in constants}

    def reference(self, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """The outputs as numpy computes them from the tensor expression.

        Raises:
            ProgramError: the program holds no tensor expression.
            ShapeError: an input is missing.
        """
        return evaluate(self.outputs, {**inputs, **self._constants()})

    def _constants(self) -> dict[str, npt.NDArray[Any]]:
        segments = dict(self.segments)
        found = {}
        for tensor in self.tensors:
            if tensor.role == "constant":
                found[tensor.name] = tensor.unpack(np.frombuffer(segments[tensor.offset], dtype=np.uint8))
        return found

    def _check_expression(self, outputs: tuple[Tensor, ...]) -> None:
        """Refuse a tensor expression that is not about this program's tensors."""
        written = {t.name: (t.shape, t.dtype) for t in outputs}
        read = {t.name: (t.shape, t.dtype) for t in producers(outputs) if isinstance(t.op, Placeholder)}
        for tensor in self.tensors:
            known = written if tensor.role == "output" else read
            if known.get(tensor.name) != (tensor.shape, tensor.dtype):
                raise ProgramError(
                    f"the tensor expression is damaged: it has no {tensor.role} {tensor.name} of "
                    f"{tensor.dtype}{list(tensor.shape)}, as the program has"
                )

    # --- checking and running ------------------------------------------------------------------------

    def check(self) -> TokenReport:
        """Prove or refute that the program neither deadlocks nor races, before it runs."""
        base = self.config.mem_base
        span = (base + self.code_offset, base + self.code_offset + len(self.code))
        return check_tokens(
            self.instructions,
            self.config,
            memory=self.dram(),
            program_span=span,
            tokens=self.start.tokens,
            contents=self.start.contents,
        )

    def run(
        self,
        inputs: Mapping[str, npt.NDArray[Any]] | None = None,
        *,
        backend: str = "sim",
        seed: int = 0,
        check: bool = True,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        engine: str | None = None,
        wave: str | Path | None = None,
        record: bool = False,
        progress: Callable[[int], None] | None = None,
        **timing: int | str,
    ) -> Result:
        """Run the program.

        Args:
            inputs: arrays by name; those not given are random, see :meth:`random_inputs`.
            backend: ``sim`` (function and cycles), ``functional`` (function only) or ``rtl`` (the hardware).
            seed: of random inputs, of what is in the scratchpads at the start, and of a random order.
            check: compare the outputs with :meth:`reference`.
            order: of functional execution, ``program`` or ``random``.
            max_cycles, max_uops: limits.
            engine: what simulates the hardware, see :data:`~accel.hw.engines.choose.ENGINES`.
            wave: of the hardware, a VCD or FST file to write.
            record: of the hardware, keep :attr:`~accel.result.Result.events`; the simulator always does.
            progress: of the hardware, called now and then with the cycle.
            timing: configuration fields to replace for this run, as ``read_latency=100``.

        Raises:
            AccelError: an unknown backend, a negative seed, or options of another backend.
            EngineError: the engine does not exist or cannot be built.
            HardwareError: the hardware breaks a rule.
            ConfigError: a setting that is no timing field, or a bad value.
            ShapeError: an input that the program does not have, or of another shape or dtype.
            MachineError, DeadlockError, LimitExceeded: the machine stopped early.
        """
        _check_backend(backend, BACKENDS)
        if backend != "rtl" and (engine is not None or wave is not None):
            raise AccelError(
                f"an engine or a wave file is given with the backend {backend!r}; they go with 'rtl'"
            )
        program = self.with_timing(self.config.override(timing, kinds=("timing",))) if timing else self
        program, values = program._with_values(inputs, seed)
        hardware = program._hardware(engine, wave) if backend == "rtl" else None
        start = time.perf_counter()
        dram = program.dram()
        program._pack(dram, values)
        packed = time.perf_counter()
        pads = Scratchpads.random(program.config, seed)
        limits = program.limits(max_cycles, max_uops)
        if hardware is not None:
            with hardware:
                done = program._run_hardware(hardware, dram, pads, *limits, record=record, progress=progress)
        else:
            done = program._simulate(dram, pads, backend, seed, order, *limits)
        simulated = time.perf_counter()
        outputs = program._unpack(dram)
        unpacked = time.perf_counter()
        mismatches = None
        if check and program.has_expression:
            expected = program.reference(values)
            mismatches = sum(int((outputs[name] != expected[name]).sum()) for name in outputs)
        return Result(
            outputs=outputs,
            mismatches=mismatches,
            backend=backend,
            image=program,
            uops=done[0],
            timing=done[1],
            compulsory=program.compulsory,
            compile_seconds=program.compile_seconds,
            pack_seconds=packed - start + unpacked - simulated,
            simulate_seconds=simulated - packed,
        )

    def prepared(
        self, inputs: Mapping[str, npt.NDArray[Any]] | None = None, seed: int = 0
    ) -> "tuple[Program, Dram]":
        """The program as it runs on these inputs, and DRAM with all of it in place.

        Args:
            inputs: arrays by name; those not given are random.
            seed: of random inputs.

        Raises:
            AccelError: a negative seed.
            ShapeError: an input that the program does not have, or of another shape or dtype.
        """
        program, values = self._with_values(inputs, seed)
        dram = program.dram()
        program._pack(dram, values)
        return program, dram

    def _with_values(
        self, inputs: Mapping[str, npt.NDArray[Any]] | None, seed: int
    ) -> "tuple[Program, dict[str, npt.NDArray[Any]]]":
        """The program as it runs on these inputs, and a value for each."""
        _check_seed(seed)
        given = dict(inputs or {})
        self._check_inputs(given)
        values = (self.random_inputs(seed) if self._missing(given) else {}) | given
        return self._for_values(values), values

    def _for_values(self, values: Mapping[str, npt.NDArray[Any]]) -> "Program":
        """This program, or, where a value is beyond what its folded bias can express, an unfolded one."""
        refused = any(
            tensor.role == "input"
            and tensor.preparation is not None
            and not tensor.preparation.accepts(values[tensor.name])
            for tensor in self.tensors
        )
        if not refused or not self.has_expression:
            return self  # packing says what is wrong
        image = compile_schedule(self.schedule(), self.config, constants=self._constants(), fold=False)
        return as_program(image)

    def _hardware(self, engine: str | None, wave: str | Path | None) -> "Engine":
        from accel.hw.engines.choose import open_engine  # noqa: PLC0415  # seldom needed

        return open_engine(self.config, engine, wave=None if wave is None else Path(wave))

    def _run_hardware(
        self,
        hardware: "Engine",
        dram: Dram,
        pads: Scratchpads,
        max_cycles: int,
        max_uops: int,
        *,
        record: bool,
        progress: Callable[[int], None] | None,
    ) -> tuple[int, Timing | None]:
        """Micro-ops executed, and what is known of cycles."""
        from accel.hardware import check_uops, raise_if_bad, run_on_hardware  # noqa: PLC0415  # seldom needed

        uops = check_uops(self.instructions, self.config, max_uops)
        run = run_on_hardware(
            self, dram, pads, hardware, max_cycles=max_cycles, record=record, progress=progress
        )
        raise_if_bad(run, self.instructions, self.start.tokens, max_cycles)
        return uops, run

    def _simulate(
        self,
        dram: Dram,
        pads: Scratchpads,
        backend: str,
        seed: int,
        order: Order,
        max_cycles: int,
        max_uops: int,
    ) -> tuple[int, Timing | None]:
        """Micro-ops executed, and what is known of cycles."""
        simulation = self.execute(
            dram, pads, backend=backend, seed=seed, order=order, max_cycles=max_cycles, max_uops=max_uops
        )
        simulation.raise_if_bad()
        return simulation.functional.uops, simulation.timing

    def limits(self, max_cycles: int, max_uops: int) -> tuple[int, int]:
        """The limits given, if :attr:`start` has none that is lower."""
        start = self.start
        return min(max_cycles, start.max_cycles or max_cycles), min(max_uops, start.max_uops or max_uops)

    def execute(
        self,
        dram: Dram,
        pads: Scratchpads,
        *,
        backend: str = "sim",
        seed: int = 0,
        order: Order = "program",
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
    ) -> Simulation:
        """Run the program on memories that are there already.

        Args:
            dram: with instructions and data in it, as from :meth:`~accel.image.Image.dram`; it is changed.
            pads: the scratchpads, which are changed; first they get what ``start`` says.
            backend: ``sim`` or ``functional``.
            seed: of a random order.
            order: of functional execution.
            max_cycles, max_uops: limits, if ``start`` has none that is lower.

        Raises:
            AccelError: an unknown backend.
        """
        _check_backend(backend, SIMULATORS)
        max_cycles, max_uops = self.limits(max_cycles, max_uops)
        return simulate(
            self.instructions,
            self.config,
            dram,
            pads.fill(self.start.contents),
            address=self.config.mem_base + self.code_offset,
            tokens=self.start.tokens,
            timed=backend == "sim",
            order=order,
            seed=seed,
            max_cycles=max_cycles,
            max_uops=max_uops,
        )

    def _inputs(self) -> dict[str, tuple[tuple[int, ...], str]]:
        return {t.name: (t.shape, t.dtype) for t in self.tensors if t.role == "input"}

    def _missing(self, given: Mapping[str, object]) -> list[str]:
        return [name for name in self._inputs() if name not in given]

    def _check_inputs(self, given: Mapping[str, object]) -> None:
        known = self._inputs()
        for name, value in given.items():
            if name not in known:
                raise ShapeError(f"{name!r} is no input of the program; {nearest(name, known)}")
            check_array(name, value, *known[name])

    def _pack(self, dram: Dram, values: Mapping[str, npt.NDArray[Any]]) -> None:
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


def _check_backend(backend: str, valid: Sequence[str]) -> None:
    if backend not in valid:
        raise AccelError(f"the backend is {backend!r}; {nearest(backend, valid)}")


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise AccelError(f"the seed is {seed}; it must not be negative")


def build(
    target: Schedule | Workload,
    on: Machine | Config | str,
    *,
    vthreads: int | None = None,
    steps: list[Step] | None = None,
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Program:
    """Compile a schedule, or a workload with the default schedule, for a machine.

    Args:
        target: what to compile.
        on: the machine, its configuration or the configuration's name.
        vthreads: how many virtual threads the loop bound to them is split into; what the schedule says, or
            for a workload what the model chooses, if not given.
        steps: of a workload's schedule (:mod:`accel.schedules`), instead of the default one.
        constants: inputs whose values are known now.

    Raises:
        ConfigError, ScheduleError, TensorizeError, ShapeError: it does not fit the machine.
        RaceError, DeadlockError, MachineError: the compiler's own output failed the token check.
    """
    chosen = on if isinstance(on, Machine) else machine(on)
    begin = time.perf_counter()
    options = {"workload": target.name, **target.parameters} if isinstance(target, Workload) else {}
    schedule = _schedule(target, chosen, vthreads, steps)
    image = compile_schedule(schedule, chosen.config, constants=constants, options=options)
    program = as_program(replace(image, compile_seconds=time.perf_counter() - begin))
    program.check().raise_if_bad()
    return program


def _schedule(
    target: Schedule | Workload, on: Machine, vthreads: int | None, steps: list[Step] | None
) -> Schedule:
    if isinstance(target, Workload):
        if steps is None:
            return default_schedule(target, on, vthreads)
        schedule = scheduled(target, on, steps)
    elif steps is None:
        schedule = target
    else:
        raise ScheduleError("steps are given with a schedule; they go with a workload")
    return schedule if vthreads is None else rethreaded(schedule, on, vthreads)


def as_program(image: Image) -> Program:
    """An image with all that can be done to programs."""
    return Program(**{name: getattr(image, name) for name in image.__dataclass_fields__})

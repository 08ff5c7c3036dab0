"""Programs as users handle them: build, save, load, show, check and run."""

import reprlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_array, check_integer, check_mapping, check_path
from accel.base.errors import AccelError, ProgramError, ScheduleError, ShapeError, nearest
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.expr.data import expression_from_data
from accel.compiler.expr.inputs import random_inputs
from accel.compiler.expr.metrics import Compulsory, compulsory
from accel.compiler.expr.reference import evaluate
from accel.compiler.expr.tensor import Placeholder, Tensor, producers
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.default import default_schedule
from accel.compiler.schedule.files import rethreaded, scheduled
from accel.compiler.schedule.records import apply_steps
from accel.compiler.schedule.schedule import Schedule, Step, create_schedule
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.image.dram import Dram
from accel.image.image import Image
from accel.proof.check import TokenReport, check_tokens
from accel.run.execution import Execution, simulated
from accel.run.result import Result
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Order
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation, simulate
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine

SIMULATORS = ("sim", "functional")
BACKENDS = (*SIMULATORS, "rtl")
"""What runs a program: cycle-level and functional simulator, and the hardware in simulation."""
_WITHOUT_SOURCE = "it can be run, checked, disassembled, and shown at the stages streams and asm"


@dataclass(frozen=True, kw_only=True, repr=False)
class Program(Image):
    """A compiled program; see :class:`accel.image.image.Image` for its parts."""

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
    def vthreads(self) -> int:
        """How many virtual threads it was compiled with; 1 if that is not known."""
        steps = (self.source or {}).get("schedule") or []
        bound = {(step["stage"], step["axis"]) for step in steps if step["op"] == "bind"}
        made = [
            int(step["factor"])
            for step in steps
            if step["op"] == "split" and (step["stage"], (step["names"] or ("", ""))[1]) in bound
        ]
        return max(made, default=1)

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
        seed = check_seed(seed)
        if not self.has_expression:
            rng = np.random.default_rng(seed)
            bounds = {dtype: np.iinfo(dtype) for dtype in ("int8", "int32")}
            return {
                name: rng.integers(bounds[dtype].min, bounds[dtype].max, shape, dtype, endpoint=True)
                for name, (shape, dtype) in self.inputs.items()
            }
        constants = {t.name for t in self.tensors if t.role == "constant"}
        drawn = random_inputs(self.outputs, seed)
        return {name: value for name, value in drawn.items() if name not in constants}

    def reference(self, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """The outputs as numpy computes them from the tensor expression.

        Raises:
            ProgramError: the program holds no tensor expression.
            ShapeError: an input is missing, or of another shape or dtype.
        """
        known = self.inputs
        given = {
            name: check_array(name, value, *known[name]) if name in known else value
            for name, value in check_mapping("the inputs", inputs).items()
        }
        return evaluate(self.outputs, {**given, **self._constants()})

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
        """Prove or refute that the program neither deadlocks nor races, before it runs; once is enough."""
        return self._report

    @cached_property
    def _report(self) -> TokenReport:
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
            record: of the hardware, keep :attr:`~accel.run.result.Result.events`; the simulator always does.
            progress: of the hardware, called now and then with the cycle.
            timing: configuration fields to replace for this run, as ``read_latency=100``.

        Raises:
            AccelError: an unknown backend, a negative seed, or options of another backend.
            EngineError: the engine does not exist or cannot be built.
            HardwareError: the hardware breaks a rule.
            ConfigError: a setting that is no timing field, or a bad value.
            ShapeError: an input that the program does not have, or of another shape or dtype.
            MachineError, DeadlockError, LimitExceeded: the machine stopped early; its ``result`` is what is
                known of the run up to there.
        """
        check_backend(backend, BACKENDS)
        seed = check_seed(seed)
        max_cycles, max_uops = self.limits(max_cycles, max_uops)
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
        with hardware or nullcontext():
            done = program.execute(
                dram,
                Scratchpads.random(program.config, seed),
                backend=backend,
                hardware=hardware,
                seed=seed,
                order=order,
                max_cycles=max_cycles,
                max_uops=max_uops,
                record=record,
                look=False,
                progress=progress,
            )
        finished = time.perf_counter()
        outputs = program._unpack(dram) if done.error is None else {}
        unpacked = time.perf_counter()
        mismatches = None
        if check and done.error is None and program.has_expression:
            expected = program.reference(values)
            mismatches = sum(int((outputs[name] != expected[name]).sum()) for name in outputs)
        result = Result(
            outputs=outputs,
            mismatches=mismatches,
            backend=backend,
            image=program,
            uops=done.uops,
            timing=done.timing,
            compulsory=program.compulsory if done.error is None else None,
            compile_seconds=program.compile_seconds,
            pack_seconds=packed - start + unpacked - finished,
            simulate_seconds=finished - packed,
            error=done.error,
        )
        if done.error is not None:
            done.error.result = result
        done.raise_if_bad()
        return result

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
        seed = check_seed(seed)
        given = self.checked_inputs(inputs)
        values = (self.random_inputs(seed) if self._missing(given) else {}) | given
        return self.for_values(values), values

    def for_values(self, values: Mapping[str, npt.NDArray[Any]]) -> "Program":
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
        return as_program(
            compile_schedule(self.schedule(), self.config, constants=self._constants(), fold=False)
        )

    def _hardware(self, engine: str | None, wave: str | Path | None) -> "Engine":
        from accel.hw.engines.choose import open_engine  # noqa: PLC0415  # seldom needed

        return open_engine(self.config, engine, wave=None if wave is None else check_path("wave file", wave))

    def limits(self, max_cycles: int, max_uops: int) -> tuple[int, int]:
        """The limits given, if :attr:`start` has none that is lower.

        Raises:
            AccelError: one that is no positive integer.
        """
        max_cycles = check_integer("max_cycles", max_cycles, error=AccelError)
        max_uops = check_integer("max_uops", max_uops, error=AccelError)
        start = self.start
        return min(max_cycles, start.max_cycles or max_cycles), min(max_uops, start.max_uops or max_uops)

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
            record: of the hardware, keep events.
            look: of the hardware, have ``pads`` hold at the end what its scratchpads hold.
            progress: of the hardware, called now and then with the cycle.

        Raises:
            AccelError: an unknown backend, or what does not go with it.
            EngineError: the hardware cannot be built.
            HardwareError: the hardware breaks a rule.
        """
        check_backend(backend, BACKENDS)
        if backend != "rtl":
            if hardware is not None:
                raise AccelError(f"hardware is given with the backend {backend!r}; it goes with 'rtl'")
            return simulated(
                self.simulate(
                    dram,
                    pads,
                    timed=backend == "sim",
                    seed=seed,
                    order=order,
                    max_cycles=max_cycles,
                    max_uops=max_uops,
                )
            )
        check_order(backend, order)
        from accel.run.rtl import execute_on_hardware  # noqa: PLC0415  # seldom needed

        max_cycles, max_uops = self.limits(max_cycles, max_uops)
        with nullcontext(hardware) if hardware is not None else self._hardware(None, None) as engine:
            return execute_on_hardware(
                self,
                dram,
                pads,
                engine,
                max_cycles=max_cycles,
                max_uops=max_uops,
                record=record,
                look=look,
                progress=progress,
            )

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
    ) -> Simulation:
        """:meth:`execute` on a simulator, with all that it knows; ``timed`` or function only."""
        max_cycles, max_uops = self.limits(max_cycles, max_uops)
        return simulate(
            self.instructions,
            self.config,
            dram,
            pads.fill(self.start.contents),
            address=self.config.mem_base + self.code_offset,
            tokens=self.start.tokens,
            timed=timed,
            order=order,
            seed=check_seed(seed),
            max_cycles=max_cycles,
            max_uops=max_uops,
        )

    @property
    def inputs(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of every input, by name."""
        return {t.name: (t.shape, t.dtype) for t in self.tensors if t.role == "input"}

    def _missing(self, given: Mapping[str, object]) -> list[str]:
        return [name for name in self.inputs if name not in given]

    def named_inputs(self, given: object) -> dict[str, Any]:
        """What is given for inputs by name, of whatever kind; nothing if it is None.

        Raises:
            ShapeError: it is no mapping, or names an input that the program does not have.
        """
        known = self.inputs
        named = check_mapping("the inputs", given)
        for name in named:
            if name not in known:
                raise ShapeError(f"{name!r} is no input of the program; {nearest(name, known)}")
        return named

    def checked_inputs(self, given: object) -> dict[str, npt.NDArray[Any]]:
        """Arrays for inputs by name, as plain ones.

        Raises:
            ShapeError: as :meth:`named_inputs`, or an array of another shape or dtype, or a masked one.
        """
        known = self.inputs
        return {
            name: check_array(name, value, *known[name]) for name, value in self.named_inputs(given).items()
        }

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


def check_engine(backend: str, engine: str | None) -> None:
    """Refuse an engine for a backend that has none.

    Raises:
        AccelError: it is given with another backend than ``rtl``.
    """
    if backend != "rtl" and engine is not None:
        raise AccelError(f"an engine is given with the backend {backend!r}; it goes with 'rtl'")


def check_order(backend: str, order: str) -> None:
    """Refuse an order for a backend that has its own.

    Raises:
        AccelError: it is random, and the backend ``rtl``.
    """
    if backend == "rtl" and order != "program":
        raise AccelError(f"the order is {order!r} with the backend 'rtl'; the hardware has its own")


def check_backend(backend: str, valid: Sequence[str]) -> None:
    """Refuse a backend that is none of ``valid``.

    Raises:
        AccelError: naming the nearest.
    """
    if backend not in valid:
        raise AccelError(f"the backend is {backend!r}; {nearest(backend, valid)}")


def check_seed(seed: object) -> int:
    """A seed, as Python's own integer.

    Raises:
        AccelError: it is none, or negative.
    """
    return check_integer("the seed", seed, least=0, error=AccelError)


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
        steps: of a workload's schedule (:mod:`accel.compiler.schedule.files`), instead of the default one.
        constants: inputs whose values are known now.

    Raises:
        ConfigError, ScheduleError, TensorizeError, ShapeError: it does not fit the machine, or is nothing
            that can be compiled.
        RaceError, DeadlockError, MachineError: the compiler's own output failed the token check.
    """
    chosen = machine(on)
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
    elif not isinstance(target, Schedule):
        raise ScheduleError(
            f"what is to be compiled is {reprlib.repr(target)}; it must be a workload, as accel.gemm makes, "
            f"or a schedule"
        )
    elif steps is None:
        schedule = target
    else:
        raise ScheduleError("steps are given with a schedule; they go with a workload")
    return schedule if vthreads is None else rethreaded(schedule, on, vthreads)


def as_program(image: Image) -> Program:
    """An image with all that can be done to programs."""
    return Program(**{name: getattr(image, name) for name in image.__dataclass_fields__})

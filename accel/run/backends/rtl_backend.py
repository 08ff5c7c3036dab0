"""The backend ``rtl``."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from accel.base.errors import EngineError, MachineError
from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.fault_causes import (
    EMPTY_PROGRAM,
    STOPPED,
    Cause,
    Fault,
    fault_error,
    fetch_fault,
    instruction_faults,
    overflow_fault,
    timeout_fault,
)
from accel.core.isa import Finish, Instruction, Load, Loops, Memory, Store, Unit, encode
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import Counter, explain_deadlock, pushes, stuck
from accel.hw.engines.engine_driver import Contents, Engine, Progress
from accel.hw.engines.hardware_run import Behaviour, HardwareRun
from accel.hw.engines.open_engine import open_engine
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.test_scenario import NO_TOKENS, Tokens
from accel.run.backends.backend import Backend, Execution
from accel.run.run_options import RunOptions
from accel.sim.functional.executor import uop_limit_fault
from accel.sim.functional.scratchpads import Scratchpads

_CARRIERS: dict[Counter, Instruction] = {
    Counter.LOAD_TO_COMPUTE: Load(memory=Memory.INP, x_size=0, push_next=True),
    Counter.COMPUTE_TO_LOAD: Load(memory=Memory.UOP, x_size=0, push_prev=True),
    Counter.COMPUTE_TO_STORE: Load(memory=Memory.UOP, x_size=0, push_next=True),
    Counter.STORE_TO_COMPUTE: Store(x_size=0, push_prev=True),
}


class Rtl(Backend):
    """The hardware in simulation."""

    name = "rtl"

    def __init__(self, engine: Engine, *, leave_open: bool = False) -> None:
        self.engine = engine
        self._leave_open = leave_open

    @classmethod
    def open(cls, config: Config, options: RunOptions) -> Self:
        return cls(open_engine(config, options.engine, wave=options.wave))

    def reset(self) -> None:
        self.engine.reset()

    def close(self) -> None:
        if not self._leave_open:
            self.engine.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._leave_open:
            self.engine.__exit__(kind, error, trace)

    def execute(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Execution:
        """A program with too many micro-ops is not started, since hardware does not count them."""
        options = options.within(program.start)
        if program.start.contents and not self.engine.observed:
            raise EngineError(
                "the program presets scratchpads, and this hardware cannot; use the backend rtl"
            )
        uops: int | None
        try:
            uops = check_uops(program.instructions, program.config, options.max_uops)
        except MachineError as error:
            pads.fill(program.start.contents)
            return Execution(error=error, uops=0, tokens=program.start.tokens, timing=None)
        run = run_on_hardware(
            program,
            dram,
            pads,
            self.engine,
            max_cycles=options.max_cycles,
            record=options.record,
            progress=options.progress,
            stop_at=options.stop_at,
            bus_timeout=options.bus_timeout,
        )
        if options.look:
            copy_contents(pads, self.engine.peek())
        stopped: MachineError | None = None
        try:
            raise_if_bad(
                run,
                program.instructions,
                program.start.tokens,
                options.max_cycles,
                bus_timeout=options.bus_timeout,
            )
        except MachineError as error:
            stopped, uops = error, None
        return Execution(error=stopped, uops=uops, tokens=run.tokens, timing=run)


def run_on_hardware(
    program: Image,
    dram: Dram,
    pads: Scratchpads,
    engine: Engine,
    *,
    max_cycles: int,
    behaviour: Behaviour | None = None,
    record: bool = False,
    patience: int | None = None,
    progress: Progress | None = None,
    stop_at: int | None = None,
    bus_timeout: int = 0,
) -> HardwareRun:
    """Run a program, after another one that pushes its initial tokens.

    Args:
        pads: initial contents, apart from the program's presets. Not changed.
    """
    if program.start.tokens != NO_TOKENS:
        push_tokens(engine, program.config, program.start.tokens)
    filled = pads.copy().fill(program.start.contents)
    return engine.run(
        program.config,
        dram,
        address=program.config.mem_base + program.code_offset,
        length=len(program.instructions),
        contents=tuple(filled.of(pad) for pad in scratchpads_of(program.config).values()),
        max_cycles=max_cycles,
        behaviour=behaviour,
        record=record,
        patience=patience,
        progress=progress,
        stop_at=stop_at,
        bus_timeout=bus_timeout,
    )


def copy_contents(pads: Scratchpads, contents: Contents) -> None:
    """Copy the result of ``Engine.peek`` into scratchpads."""
    for pad, raw in zip(pads.present, contents, strict=True):
        pads.of(pad).reshape(-1).view(np.uint8)[:] = raw.reshape(-1)


def check_uops(instructions: Sequence[Instruction], config: Config, max_uops: int) -> int:
    """Count micro-ops up to the first fault of fetch or compute."""
    total = 0
    checked = instruction_faults(instructions, config)
    for index, instruction in enumerate(instructions):
        if fetch_fault(instruction, index, len(instructions), config) is not None:
            break
        if instruction.unit is Unit.COMPUTE and checked[index] is not None:
            break
        if isinstance(instruction, Loops):
            excess = uop_limit_fault(instruction, total, max_uops)
            if excess is not None:
                raise fault_error(excess[1], index)
            total += instruction.uop_count
    return total


def push_tokens(engine: Engine, config: Config, tokens: Tokens) -> None:
    body = [_CARRIERS[counter] for counter in Counter for _ in range(tokens[counter])]
    code = encode([*body, Finish()], config)
    size = -(-len(code) // PAGE_BYTES) * PAGE_BYTES
    alone = config.override({"mem_base": 0, "mem_size": size, "serial": 0})
    dram = Dram.of(alone)
    dram.write(0, code)
    run = engine.run(alone, dram, address=0, length=len(code) // INSTRUCTION_BYTES, max_cycles=1 << 40)
    assert run.cause is Cause.NONE


def raise_if_bad(
    run: HardwareRun,
    instructions: Sequence[Instruction],
    tokens: Tokens,
    max_cycles: int,
    *,
    bus_timeout: int = 0,
) -> None:
    if run.cause is not Cause.NONE:
        message = _message(run, instructions, tokens, max_cycles, bus_timeout)
        raise fault_error(Fault(cause=run.cause, message=message), run.index, run.cycles)


def _message(
    run: HardwareRun, instructions: Sequence[Instruction], tokens: Tokens, max_cycles: int, bus_timeout: int
) -> str:
    if run.cause is Cause.LIMIT:
        return f"the run takes more than {max_cycles} cycles (max_cycles)"
    if run.cause is Cause.STOPPED:
        return STOPPED.message
    if run.cause is Cause.TIMEOUT:
        return timeout_fault(bus_timeout).message
    if run.cause is Cause.DEADLOCK:
        return explain_deadlock(stuck(instructions, run.config, tokens))
    if run.index >= len(instructions):
        return EMPTY_PROGRAM.message
    instruction = instructions[run.index]
    known = (
        fetch_fault(instruction, run.index, len(instructions), run.config),
        instruction_faults(instructions[: run.index + 1], run.config)[-1],
    )
    for fault in known:
        if fault is not None and fault.cause is run.cause:
            return fault.message
    if run.cause is Cause.TOKEN_OVERFLOW:
        full = [c.label for c in pushes(instruction) if run.tokens[c] == run.config.token_limit]
        return overflow_fault(" or ".join(full), run.config).message
    return f"{instruction.mnemonic}: {run.cause.doc}"

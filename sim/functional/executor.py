"""The living definition of the instruction set: what each instruction does to scratchpads and DRAM.

Timing plays no part; instructions run one at a time, in program order where the tokens allow it, or in
any other order that they allow.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from accel.base.distinct import Distinct
from accel.base.errors import AccelError
from accel.core.access import COLUMNS, Elements, LoopShape, as_elements, index_fault, loop_shape, reached
from accel.core.config import Config
from accel.core.faults import (
    EMPTY_PROGRAM,
    Cause,
    Fault,
    fault_error,
    fetch_faults,
    instruction_fault,
    instruction_faults,
    overflow_fault,
    residual_fault,
    taps_fault,
)
from accel.core.isa import (
    Alu,
    Instruction,
    Load,
    Loops,
    Mac,
    Products,
    Set,
    SetAcc,
    Store,
    UopArray,
    decode_uops,
    without_tokens,
)
from accel.core.token_rules import Counter, Stepper, TokenFlow, Waiting, deadlock_place, explain_deadlock
from accel.image.dram import Dram
from accel.sim.functional.alu import AluBox, alu_box, alu_general
from accel.sim.functional.depthwise import TapProducts, depthwise_box, depthwise_general
from accel.sim.functional.gemm import Product, gemm_box, gemm_general
from accel.sim.functional.patterns import Box, affine_box, affine_boxes, apart, disjoint, index_chunks
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.functional.transfers import Copy, RunState, copy_of, execute_load, execute_store

DEFAULT_MAX_UOPS = 10**10
"""Micro-ops that a run may execute unless the caller says otherwise."""

_MOST_BOXES = 64
"""A GEMM is looked at as so many matrix products at most."""

_MOST_COPIES = 1 << 14
"""LOADs of which the way they go is remembered."""

Order = Literal["program", "random"]


class _Pattern(NamedTuple):
    """What is worth computing once for equal instructions that run micro-ops."""

    uops: UopArray
    shape: LoopShape
    fault: tuple[int, Fault] | None = None
    zeros: Elements | None = None
    """The accumulators that a GEMM with ``reset`` writes; None if it is another instruction, or at fault."""
    products: tuple[Product, ...] = ()
    """The matrix products that another GEMM or a MAC comes to; none if they are not known."""
    taps: TapProducts | None = None
    """The products of a depthwise MAC; None if it is another instruction, or they are not known."""
    alu: AluBox | None = None
    """The operations on arrays that an ALU instruction is; None if they are not known."""


class Executor:
    """Runs single instructions on scratchpads and DRAM."""

    def __init__(self, config: Config, dram: Dram, pads: Scratchpads) -> None:
        self.config = config
        self.dram = dram
        self.pads = pads
        self.state = RunState(config)
        self._patterns: dict[tuple[int, bytes, SetAcc | None], _Pattern] = {}
        self._bare: dict[int, tuple[Loops, int]] = {}
        """Instructions and a number for what they are without tokens, by the id of the first, which is kept
        so that nobody else takes it."""
        self._numbers: dict[Loops, int] = {}
        self._copies: dict[int, Copy] = {}
        """By the id of the instruction, which is kept in it."""

    def execute(self, instruction: Instruction) -> tuple[int, Fault] | None:
        """Run one instruction as a whole.

        Returns:
            None, or the fault that stopped it and the micro-ops executed before; of a fault that is not
            in a micro-op nothing has moved.
        """
        fault = instruction_fault(instruction, self.config)
        fault = fault or residual_fault(instruction, self.state.held, self.config)
        fault = fault or taps_fault(instruction, self.state.acc)
        return (0, fault) if fault is not None else self.execute_checked(instruction)

    def execute_checked(self, instruction: Instruction) -> tuple[int, Fault] | None:
        """As :meth:`execute`, for an instruction that is not wrong by itself."""
        copy = self._copies.get(id(instruction))
        if copy is not None and copy.moves == self.dram.moves:
            copy.target[...] = copy.source
        elif isinstance(instruction, Load):
            self._load(instruction)
        elif isinstance(instruction, Store):
            execute_store(instruction, self.config, self.dram, self.pads, self.state)
        elif isinstance(instruction, Loops) and instruction.uop_count:
            pattern = self._pattern(instruction)
            count = instruction.uop_count if pattern.fault is None else pattern.fault[0]
            if count:
                self._execute_loops(instruction, pattern, count)
            return pattern.fault
        elif isinstance(instruction, Set):
            self.state.take_setting(instruction)
        return None

    def _load(self, instruction: Load) -> None:
        copy = copy_of(instruction, self.config, self.dram, self.pads)
        if copy is None:
            execute_load(instruction, self.config, self.dram, self.pads, self.state)
            return
        copy.target[...] = copy.source
        if len(self._copies) < _MOST_COPIES:
            self._copies[id(instruction)] = copy

    def _pattern(self, instruction: Loops) -> _Pattern:
        words = self.pads.uop[instruction.uop_begin : instruction.uop_end]
        kept = self._bare.get(id(instruction))
        if kept is None:
            number = self._numbers.setdefault(without_tokens(instruction), len(self._numbers))
            kept = self._bare[id(instruction)] = (instruction, number)
        tapped = isinstance(instruction, Mac) and instruction.depthwise
        key = kept[1], words.tobytes(), without_tokens(self.state.acc) if tapped else None
        found = self._patterns.get(key)
        if found is None:
            found = self._patterns[key] = self._new_pattern(instruction, decode_uops(words, self.config))
        return found

    def _new_pattern(self, instruction: Loops, uops: UopArray) -> _Pattern:
        shape = loop_shape(instruction, self.config, self.state.acc)
        fault = index_fault(instruction, uops, self.config, self.state.acc)
        if fault is not None:
            return _Pattern(uops, shape, fault)
        return self._recognized(instruction, uops, shape)

    def _recognized(self, instruction: Loops, uops: UopArray, shape: LoopShape) -> _Pattern:
        """The pattern of an instruction whose micro-ops are not at fault."""
        if isinstance(instruction, Products) and not instruction.multiplies:
            return _Pattern(uops, shape, zeros=as_elements(reached(uops, shape, COLUMNS["dst"])))
        box = affine_box(uops, shape)
        if isinstance(instruction, Products):
            overwrite = not instruction.accumulates
            if isinstance(instruction, Mac) and instruction.depthwise:
                taps = None if box is None else depthwise_box(box, shape, overwrite=overwrite)
                return _Pattern(uops, shape, taps=None if taps is None else taps.on(self.pads))
            return _Pattern(uops, shape, products=self._products(uops, shape, box, overwrite))
        if box is None:
            return _Pattern(uops, shape)
        _, tensor, _ = shape.checked
        return _Pattern(uops, shape, alu=alu_box(self.pads.acc, box, immediate=not tensor))

    def _products(
        self, uops: UopArray, shape: LoopShape, box: Box | None, overwrite: bool
    ) -> tuple[Product, ...]:
        """Matrix products that a GEMM or MAC comes to, in any order, if there are few."""
        boxes = affine_boxes(uops, shape, _MOST_BOXES) or [] if box is None else [box]
        if overwrite and len(boxes) > 1 and not disjoint(boxes, len(reached(uops, shape, COLUMNS["dst"]))):
            return ()
        products = []
        while boxes:
            part = boxes.pop()
            product = gemm_box(part, self.config, overwrite=overwrite)
            if product is not None:
                products.append(product.on(self.pads))
                continue
            if overwrite:
                return ()
            halves = apart(part)
            boxes += halves
            if not halves or len(products) + len(boxes) > _MOST_BOXES:
                return ()
        return tuple(products)

    def _execute_loops(self, instruction: Loops, pattern: _Pattern, count: int) -> None:
        pads = self.pads
        if isinstance(instruction, Products):
            if pattern.zeros is not None:
                pads.acc[pattern.zeros] = 0
            elif not instruction.multiplies:
                for indices in index_chunks(pattern.uops, pattern.shape, count):
                    pads.acc[indices[:, 0]] = 0
            elif pattern.taps is not None:
                pattern.taps.run()
            elif isinstance(instruction, Mac) and instruction.depthwise:
                overwrite = not instruction.accumulates
                depthwise_general(pads, pattern.uops, pattern.shape, count, overwrite=overwrite)
            elif pattern.products:
                for product in pattern.products:
                    product.run()
            else:
                overwrite = not instruction.accumulates
                gemm_general(pads, pattern.uops, pattern.shape, count, overwrite=overwrite)
        elif isinstance(instruction, Alu):
            if pattern.alu is not None:
                pattern.alu.run(instruction)
            else:
                alu_general(pads.acc, instruction, pattern.uops, pattern.shape, count)


@dataclass(kw_only=True)
class FunctionalRun:
    """What a functional execution did."""

    order: list[int] = field(default_factory=list)
    """Program indices in the order in which they ran."""
    uops: int = 0
    """Micro-ops executed."""
    faults: dict[int, tuple[int, Fault]] = field(default_factory=dict)
    """By instruction: micro-ops executed before the fault, and the fault. Units other than the one at
    fault have run on."""
    deadlock: list[Waiting] | None = None
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)
    """The counters at the end."""

    def raise_if_bad(self) -> None:
        """Raise the fault that is first in program order, or the deadlock, at the first unit that waits.

        Raises:
            LimitExceeded, MachineError, DeadlockError: with the instruction's index.
        """
        if self.faults:
            index = min(self.faults)
            raise fault_error(self.faults[index][1], index)
        if self.deadlock is not None:
            _, index = deadlock_place(self.deadlock)
            fault = Fault(cause=Cause.DEADLOCK, message=explain_deadlock(self.deadlock))
            raise fault_error(fault, index)


def run_functional(
    instructions: Sequence[Instruction],
    executor: Executor,
    *,
    order: Order = "program",
    seed: int = 0,
    max_uops: int = DEFAULT_MAX_UOPS,
    tokens: Sequence[int] = (0, 0, 0, 0),
    bounded: bool = True,
    overflows: bool = True,
    checked: Sequence[Fault | None] | None = None,
) -> FunctionalRun:
    """Execute a program on ``executor``'s scratchpads and DRAM.

    Args:
        instructions: the decoded program.
        executor: it is changed.
        order: ``program``: always the earliest instruction that may run. ``random``: any that may.
        seed: of the random order.
        max_uops: the run ends with the fault ``limit`` before an instruction that would pass it.
        tokens: counters at the start.
        bounded: obey the configured queue depths; otherwise every order that the tokens allow may occur.
        overflows: end the run when a token counter overflows in this order; it need not in others.
        checked: what :func:`~accel.core.faults.instruction_faults` finds, if the caller knows it.
    """
    if order not in ("program", "random"):
        raise AccelError(f"order is {order!r}; it must be 'program' or 'random'")
    run = FunctionalRun()
    if checked is None:
        checked = instruction_faults(instructions, executor.config)
    program = Distinct(instructions)
    known = _runnable(program, run, executor.config)
    if order == "program" and known == len(instructions) and not any(checked):
        flow = TokenFlow(program, tokens)
        if flow.in_order and not (overflows and _overflows(flow, executor.config)):
            _run_in_order(instructions, program, executor, run, max_uops)
            if not run.faults:
                run.tokens = _four(flow.left_over)
                return run
    _run_on(instructions[:known], executor, run, order, seed, max_uops, tokens, bounded, overflows, checked)
    return run


def _run_in_order(
    instructions: Sequence[Instruction],
    program: Distinct[Instruction],
    executor: "Executor",
    run: FunctionalRun,
    max_uops: int,
) -> None:
    """Execute a program that can run as it is written, up to the first fault."""
    counts = program.column(lambda one: min(one.uop_count, max_uops + 1) if isinstance(one, Loops) else 0)
    uops = np.cumsum(counts)
    within = int(np.searchsorted(uops, max_uops, side="right"))
    """Instructions before the one that passes the limit."""
    done = within
    for index, instruction in enumerate(instructions[:within]):
        fault = executor.execute_checked(instruction)
        if fault is not None:
            run.faults[index] = fault
            done = index
            break
    run.order.extend(range(done))
    run.uops = int(uops[done - 1]) if done else 0
    if done == within < len(instructions):
        fault = uop_limit_fault(instructions[within], run.uops, max_uops)
        assert fault is not None
        run.faults[within] = fault


def _run_on(
    instructions: Sequence[Instruction],
    executor: "Executor",
    run: FunctionalRun,
    order: Order,
    seed: int,
    max_uops: int,
    tokens: Sequence[int],
    bounded: bool,
    overflows: bool,
    checked: Sequence[Fault | None],
) -> None:
    """Execute what ``run`` has not executed of these instructions, in any order, one by one."""
    stepper = Stepper(instructions, executor.config, tokens=tokens, bounded=bounded)
    for done in run.order:
        stepper.run(done)
    for wrong in run.faults:
        if wrong < len(instructions):
            stepper.block(instructions[wrong].unit)
    choose = random.Random(seed).choice
    index: int | None
    while True:
        if order == "program":
            index = stepper.first()
        else:
            heads = stepper.heads()
            index = choose(heads) if heads else None
        if index is None:
            break
        instruction = instructions[index]
        known = checked[index]
        fault = (0, known) if known is not None else uop_limit_fault(instruction, run.uops, max_uops)
        if fault is None:
            fault = executor.execute_checked(instruction)
        if fault is None:
            stepper.run(index)
            fault = _overflow_fault(stepper, index, executor.config) if overflows else None
        if fault is not None:
            run.faults[index] = fault
            stepper.block(instruction.unit)
            continue
        run.order.append(index)
        if isinstance(instruction, Loops):
            run.uops += instruction.uop_count
    run.tokens = _four(stepper.tokens)
    if not stepper.done and not run.faults:
        run.deadlock = stepper.waiting()


def _four(tokens: Sequence[int]) -> tuple[int, int, int, int]:
    return tokens[0], tokens[1], tokens[2], tokens[3]


def _runnable(program: Distinct[Instruction], run: FunctionalRun, config: Config) -> int:
    """How many instructions fetch hands out before it stops; what stops it goes into the run's faults."""
    if not len(program):
        run.faults[0] = (0, EMPTY_PROGRAM)
    for index, fault in fetch_faults(program, config).items():
        run.faults[index] = (0, fault)
        return index
    return len(program)


def _overflows(flow: TokenFlow, config: Config) -> bool:
    """Whether a counter overflows in program order."""
    return any(flow.highest(counter) > config.token_limit for counter in Counter)


def uop_limit_fault(instruction: Instruction, executed: int, max_uops: int) -> tuple[int, Fault] | None:
    """The fault of an instruction whose micro-ops, after those executed before, pass ``max_uops``."""
    if not isinstance(instruction, Loops) or executed + instruction.uop_count <= max_uops:
        return None
    message = (
        f"{instruction.mnemonic} runs {instruction.uop_count} micro-ops after {executed} before it; "
        f"at most {max_uops} are allowed (max_uops)"
    )
    return 0, Fault(cause=Cause.LIMIT, message=message)


def _overflow_fault(stepper: Stepper, index: int, config: Config) -> tuple[int, Fault] | None:
    for counter in stepper.pushes[index]:
        if stepper.tokens[counter] > config.token_limit:
            return 0, overflow_fault(Counter(counter).label, config)
    return None

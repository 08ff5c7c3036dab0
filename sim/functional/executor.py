"""The executable definition of the instruction set, without timing: one instruction at a time, in an order
that the tokens allow."""

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct, field

from accel.base.blas import exact
from accel.base.errors import AccelError
from accel.base.interned_sequence import Distinct
from accel.base.run_choices import DEFAULT_MAX_UOPS
from accel.core.config import Config
from accel.core.fault_causes import (
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
from accel.core.instruction_access import (
    COLUMNS,
    Elements,
    LoopShape,
    as_elements,
    index_fault,
    loop_shape,
    reached,
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
from accel.sim.functional.load_store import ControlState, Copy, copy_of, execute_load, execute_store
from accel.sim.functional.micro_op_patterns import (
    Box,
    affine_box,
    affine_boxes,
    are_disjoint,
    index_chunks,
    split_axis,
)
from accel.sim.functional.scratchpads import Scratchpads

_MAX_MATRIX_PRODUCTS = 64
"""Limit for one GEMM."""

_MAX_REMEMBERED_COPIES = 1 << 14

Order = Literal["program", "random"]


class _LoopsAnalysis(NamedTuple):
    """At most one of ``zeros``, ``products``, ``taps`` and ``alu`` is set. If none is, each micro-op's
    indices are computed."""

    uops: UopArray
    shape: LoopShape
    fault: tuple[int, Fault] | None = None
    zeros: Elements | None = None
    """Accumulators that a GEMM with ``reset`` clears."""
    products: tuple[Product, ...] = ()
    """Products of another GEMM or of a MAC."""
    taps: TapProducts | None = None
    alu: AluBox | None = None


class Executor:
    """Executes single instructions."""

    def __init__(self, config: Config, dram: Dram, pads: Scratchpads) -> None:
        self.config = config
        self.dram = dram
        self.pads = pads
        self.state = ControlState(config)
        self._analyses: dict[tuple[int, bytes, SetAcc | None], _LoopsAnalysis] = {}
        self._numbers_by_id: dict[int, tuple[Loops, int]] = {}
        """By instruction id: the instruction, so that its id is not reused, and a number shared by
        instructions that differ only in tokens."""
        self._numbers: dict[Loops, int] = {}
        self._copies: dict[int, Copy] = {}
        """By the id of the LOAD, which the copy holds."""

    @exact
    def execute(self, instruction: Instruction) -> tuple[int, Fault] | None:
        """Return None, or the number of micro-ops executed (0 except for index faults) and the fault that
        stopped it."""
        fault = instruction_fault(instruction, self.config)
        fault = fault or residual_fault(instruction, self.state.residual_count, self.config)
        fault = fault or taps_fault(instruction, self.state.acc_setting)
        return (0, fault) if fault is not None else self.execute_checked(instruction)

    def execute_checked(self, instruction: Instruction) -> tuple[int, Fault] | None:
        copy = self._copies.get(id(instruction))
        if copy is not None and copy.moves == self.dram.moves:
            copy.target[...] = copy.source
        elif isinstance(instruction, Load):
            self._load(instruction)
        elif isinstance(instruction, Store):
            execute_store(instruction, self.config, self.dram, self.pads, self.state)
        elif isinstance(instruction, Loops) and instruction.uop_count:
            analysis = self._analysis(instruction)
            count = instruction.uop_count if analysis.fault is None else analysis.fault[0]
            if count:
                self._execute_loops(instruction, analysis, count)
            return analysis.fault
        elif isinstance(instruction, Set):
            self.state.apply_setting(instruction)
        return None

    def _load(self, instruction: Load) -> None:
        copy = copy_of(instruction, self.config, self.dram, self.pads)
        if copy is None:
            execute_load(instruction, self.config, self.dram, self.pads, self.state)
            return
        copy.target[...] = copy.source
        if len(self._copies) < _MAX_REMEMBERED_COPIES:
            self._copies[id(instruction)] = copy

    def _analysis(self, instruction: Loops) -> _LoopsAnalysis:
        words = self.pads.uop[instruction.uop_begin : instruction.uop_end]
        known = self._numbers_by_id.get(id(instruction))
        if known is None:
            number = self._numbers.setdefault(without_tokens(instruction), len(self._numbers))
            known = self._numbers_by_id[id(instruction)] = (instruction, number)
        tapped = isinstance(instruction, Mac) and instruction.depthwise
        key = known[1], words.tobytes(), without_tokens(self.state.acc_setting) if tapped else None
        found = self._analyses.get(key)
        if found is None:
            found = self._analyses[key] = self._analyze(instruction, decode_uops(words, self.config))
        return found

    def _analyze(self, instruction: Loops, uops: UopArray) -> _LoopsAnalysis:
        shape = loop_shape(instruction, self.config, self.state.acc_setting)
        fault = index_fault(instruction, uops, self.config, self.state.acc_setting)
        if fault is not None:
            return _LoopsAnalysis(uops, shape, fault)
        return self._analyze_valid(instruction, uops, shape)

    def _analyze_valid(self, instruction: Loops, uops: UopArray, shape: LoopShape) -> _LoopsAnalysis:
        if isinstance(instruction, Products) and not instruction.multiplies:
            return _LoopsAnalysis(uops, shape, zeros=as_elements(reached(uops, shape, COLUMNS["dst"])))
        box = affine_box(uops, shape)
        if isinstance(instruction, Products):
            overwrite = not instruction.accumulates
            if isinstance(instruction, Mac) and instruction.depthwise:
                taps = None if box is None else depthwise_box(box, shape, overwrite=overwrite)
                return _LoopsAnalysis(uops, shape, taps=None if taps is None else taps.on(self.pads))
            return _LoopsAnalysis(uops, shape, products=self._products(uops, shape, box, overwrite))
        if box is None:
            return _LoopsAnalysis(uops, shape)
        _, tensor, _ = shape.checked
        return _LoopsAnalysis(uops, shape, alu=alu_box(self.pads.acc, box, immediate=not tensor))

    def _products(
        self, uops: UopArray, shape: LoopShape, box: Box | None, overwrite: bool
    ) -> tuple[Product, ...]:
        boxes = affine_boxes(uops, shape, _MAX_MATRIX_PRODUCTS) or [] if box is None else [box]
        if (
            overwrite
            and len(boxes) > 1
            and not are_disjoint(boxes, len(reached(uops, shape, COLUMNS["dst"])))
        ):
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
            parts = split_axis(part)
            boxes += parts
            if not parts or len(products) + len(boxes) > _MAX_MATRIX_PRODUCTS:
                return ()
        return tuple(products)

    def _execute_loops(self, instruction: Loops, analysis: _LoopsAnalysis, count: int) -> None:
        pads = self.pads
        if isinstance(instruction, Products):
            if analysis.zeros is not None:
                pads.acc[analysis.zeros] = 0
            elif not instruction.multiplies:
                for indices in index_chunks(analysis.uops, analysis.shape, count):
                    pads.acc[indices[:, 0]] = 0
            elif analysis.taps is not None:
                analysis.taps.run()
            elif isinstance(instruction, Mac) and instruction.depthwise:
                overwrite = not instruction.accumulates
                depthwise_general(pads, analysis.uops, analysis.shape, count, overwrite=overwrite)
            elif analysis.products:
                for product in analysis.products:
                    product.run()
            else:
                overwrite = not instruction.accumulates
                gemm_general(pads, analysis.uops, analysis.shape, count, overwrite=overwrite)
        elif isinstance(instruction, Alu):
            operation = self.config.operations[instruction.alu_op]
            if analysis.alu is not None:
                analysis.alu.run(operation, instruction.imm)
            else:
                alu_general(pads.acc, operation, instruction, analysis.uops, analysis.shape, count)


class FunctionalRun(Struct, kw_only=True):
    """The result of a functional execution."""

    order: list[int] = field(default_factory=list)
    """Instruction indices in execution order."""
    uops: int = 0
    faults: dict[int, tuple[int, Fault]] = field(default_factory=dict)
    """By instruction, the micro-ops executed before its fault, and the fault. The other units continue."""
    deadlock: list[Waiting] | None = None
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)

    def raise_if_bad(self) -> None:
        """Raise the first fault in program order, or the deadlock."""
        if self.faults:
            index = min(self.faults)
            raise fault_error(self.faults[index][1], index)
        if self.deadlock is not None:
            _, index = deadlock_place(self.deadlock)
            fault = Fault(cause=Cause.DEADLOCK, message=explain_deadlock(self.deadlock))
            raise fault_error(fault, index)


@exact
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
    """Execute a program.

    Args:
        order: ``program``: the earliest instruction that can run. ``random``: any that can run.
        max_uops: the run ends with the fault ``limit`` before exceeding it.
        tokens: the counters at the start.
        bounded: obey the queue depths. Otherwise allow every order that the tokens allow.
        overflows: end the run when a token counter overflows.
        checked: each instruction's fault before its start, if known.
    """
    if order not in ("program", "random"):
        raise AccelError(f"order is {order!r}; it must be 'program' or 'random'")
    run = FunctionalRun()
    if checked is None:
        checked = instruction_faults(instructions, executor.config)
    program = Distinct(instructions)
    dispatched = _dispatched_count(program, run, executor.config)
    if order == "program" and dispatched == len(instructions) and not any(checked):
        flow = TokenFlow(program, tokens)
        if flow.in_order and not (overflows and _overflows(flow, executor.config)):
            _run_in_order(instructions, program, executor, run, max_uops)
            if not run.faults:
                run.tokens = _as_tokens(flow.left_over)
                return run
    _run_stepwise(
        instructions[:dispatched], executor, run, order, seed, max_uops, tokens, bounded, overflows, checked
    )
    return run


def _run_in_order(
    instructions: Sequence[Instruction],
    program: Distinct[Instruction],
    executor: "Executor",
    run: FunctionalRun,
    max_uops: int,
) -> None:
    counts = program.column(lambda one: min(one.uop_count, max_uops + 1) if isinstance(one, Loops) else 0)
    uops = np.cumsum(counts)
    within = int(np.searchsorted(uops, max_uops, side="right"))
    """Instructions before the one that exceeds the limit."""
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


def _run_stepwise(
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
    run.tokens = _as_tokens(stepper.tokens)
    if not stepper.done and not run.faults:
        run.deadlock = stepper.waiting()


def _as_tokens(tokens: Sequence[int]) -> tuple[int, int, int, int]:
    return tokens[0], tokens[1], tokens[2], tokens[3]


def _dispatched_count(program: Distinct[Instruction], run: FunctionalRun, config: Config) -> int:
    """``run`` gets the fault that stops fetch."""
    if not len(program):
        run.faults[0] = (0, EMPTY_PROGRAM)
    for index, fault in fetch_faults(program, config).items():
        run.faults[index] = (0, fault)
        return index
    return len(program)


def _overflows(flow: TokenFlow, config: Config) -> bool:
    return any(flow.highest(counter) > config.token_limit for counter in Counter)


def uop_limit_fault(instruction: Instruction, executed: int, max_uops: int) -> tuple[int, Fault] | None:
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

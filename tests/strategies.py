"""Random machines, instructions and programs for Hypothesis, drawn from the declarations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from accel.config import NAMED, Config
from accel.errors import ConfigError
from accel.isa import (
    CLASSES,
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Loops,
    Memory,
    Slot,
    Store,
    Transfer,
    Unknown,
    check_encodable,
    class_slots,
)
from accel.order import pops, pushes


def examples(count: int) -> settings:
    """``count`` examples in the default profile, in others as many times more as the profile asks for."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 100))


# --- machines ------------------------------------------------------------------------------------


@st.composite
def geometries(draw: DrawFn, *, blocks: int = 256, depth_bits: int = 11) -> Config:
    """A machine whose instructions fit their words: elements of up to ``blocks`` rows or columns,
    scratchpads of 2 to ``2 ** depth_bits`` elements."""
    size = st.integers(0, blocks.bit_length() - 1).map(lambda bits: 1 << bits)
    batch, block_in, block_out = draw(size), draw(size), draw(size)
    depth = st.integers(1, depth_bits).map(lambda bits: 1 << bits)
    try:
        config = Config(
            batch=batch,
            block_in=block_in,
            block_out=block_out,
            uop_bytes=4 * draw(depth),
            inp_bytes=batch * block_in * draw(depth),
            wgt_bytes=block_out * block_in * draw(depth),
            acc_bytes=4 * batch * block_out * draw(depth),
        )
        check_encodable(config)
    except ConfigError:
        assume(False)
    return config


small_machines = geometries(blocks=4, depth_bits=5)
"""Scratchpads of 2 to 32 elements, so that indices meet often."""

machines = st.sampled_from([NAMED[name] for name in sorted(NAMED)]) | geometries()


@st.composite
def timings(draw: DrawFn, base: Config) -> Config:
    """``base`` with any timing that makes queues, buffers and counters run full now and then."""
    few = st.integers(1, 4)
    latency = st.integers(1, 24)
    fetch_buffer = draw(st.sampled_from([1, 2, 4, 64]))
    return replace(
        base,
        bus_bits=draw(st.sampled_from([64, 128, 256, 512])),
        read_latency=draw(latency),
        write_latency=draw(latency),
        outstanding=draw(few | st.just(32)),
        max_burst_beats=draw(st.sampled_from([2, 4, 8, 64, 256])),
        fetch_buffer=fetch_buffer,
        fetch_chunk=draw(st.sampled_from([n for n in (1, 2, 4, 16) if n <= fetch_buffer])),
        load_queue=draw(few),
        compute_queue=draw(few),
        store_queue=draw(few),
        loads_in_flight=draw(few),
        stores_in_flight=draw(few),
        tree_stages=draw(st.integers(0, 3)),
        token_bits=draw(st.sampled_from([8, 8, 8, 2, 1])),
        serial=int(draw(st.integers(0, 5)) == 0),
    )


# --- instructions --------------------------------------------------------------------------------


def slot_values(slot: Slot) -> SearchStrategy[Any]:
    """Everything that a field's bits can hold."""
    if slot.width == 1 and slot.spec.enum is None:
        return st.booleans()
    return st.integers(slot.low, slot.high)


@st.composite
def any_instructions(draw: DrawFn, config: Config) -> Instruction:
    """Any instruction that decoding can yield: each declared field with any value."""
    cls = draw(st.sampled_from([*CLASSES.values(), Unknown]))
    values = {slot.name: draw(slot_values(slot)) for slot in class_slots(cls, config)[1:]}
    opcode = draw(st.integers(5, 7)) if cls is Unknown else int(cls.OPCODE)
    return cls(opcode=opcode, **values)


def _few(high: int) -> SearchStrategy[int]:
    """Mostly small numbers, zero and one often, all up to ``high`` (included)."""
    small = st.integers(0, min(3, high))
    return st.one_of(small, small, st.integers(0, high))


@st.composite
def loops(
    draw: DrawFn, config: Config, *, gemm: bool | None = None, iterations: int = 4, uops: int = 8
) -> Loops:
    """A GEMM or ALU instruction whose indices are often, but not always, in range."""
    cls = draw(st.sampled_from([Gemm, Alu]) if gemm is None else st.just(Gemm if gemm else Alu))
    slots = {slot.name: slot for slot in class_slots(cls, config)}
    begin = draw(st.integers(0, config.uop_depth - 1))
    values: dict[str, Any] = {
        name: draw(_few(slot.high)) for name, slot in slots.items() if "_factor_" in name
    }
    if cls is Alu:
        values |= {
            "alu_op": draw(st.sampled_from(AluOp)).value,
            "use_imm": draw(st.booleans()),
            "imm": draw(st.integers(-40, 40) | slot_values(slots["imm"])),
        }
    return cls(
        reset=draw(st.integers(0, 3)) == 0,
        uop_begin=begin,
        uop_end=draw(st.integers(max(0, begin - 1), min(begin + uops, config.uop_depth))),
        iter_out=draw(st.integers(0, iterations)),
        iter_in=draw(st.integers(0, iterations)),
        **values,
    )


@st.composite
def transfers(
    draw: DrawFn, config: Config, *, x_size: int = 5, y_size: int = 4, pad: int = 3, dram_bytes: int = 4096
) -> Transfer:
    """A LOAD or STORE that stays within its scratchpad and the first ``dram_bytes`` of DRAM, unless
    there is no room even for the smallest."""
    element = {
        Memory.UOP: 4,
        Memory.WGT: config.wgt_element_bytes,
        Memory.INP: config.inp_element_bytes,
        Memory.ACC: config.acc_element_bytes,
        Memory.OUT: config.out_element_bytes,
        Memory.ACC_8BIT: config.out_element_bytes,
    }
    memory = draw(st.sampled_from(Memory))
    name = {Memory.OUT: "acc", Memory.ACC_8BIT: "acc"}.get(memory, memory.name.lower())
    depth = int(getattr(config, f"{name}_depth"))
    pads = [0, 0, 0, 0]
    if memory != Memory.OUT and draw(st.booleans()):
        pads = [draw(st.integers(0, pad)) for _ in range(4)]
    width = draw(st.integers(1, max(1, min(x_size, depth - pads[2] - pads[3]))))
    height = draw(
        st.integers(0, max(0, min(y_size, depth // (pads[2] + width + pads[3]) - pads[0] - pads[1])))
    )
    room = depth - (pads[2] + width + pads[3]) * (pads[0] + height + pads[1])
    elements = dram_bytes // element[memory]
    stride = draw(st.integers(0, max(0, min(2 * width, (elements - width) // max(1, height)))))
    span = max(0, height - 1) * stride + width
    cls = Store if memory == Memory.OUT else Load
    return cls(
        memory=int(memory),
        sram_base=draw(st.integers(0, max(0, room))),
        dram_base=draw(st.integers(0, max(0, elements - span))),
        y_size=height,
        x_size=0 if draw(st.integers(0, 9)) == 0 else width,
        x_stride=stride,
        y_pad_0=pads[0],
        y_pad_1=pads[1],
        x_pad_0=pads[2],
        x_pad_1=pads[3],
    )


# --- memory contents -----------------------------------------------------------------------------


@st.composite
def micro_ops(draw: DrawFn, config: Config) -> npt.NDArray[np.uint32]:
    """Contents of the micro-op memory: indices small or anything, so that they meet or go astray."""
    kind, seed = draw(st.sampled_from(["small", "any", "equal"])), draw(st.integers(0, 1 << 32))
    if kind == "equal":
        return np.full(config.uop_depth, seed & 0xFFFFFFFF, dtype=np.uint32)
    rng = np.random.default_rng(seed)
    if kind == "any":
        return rng.integers(0, 1 << 32, config.uop_depth, dtype=np.uint32)
    acc, src = config.acc_address_bits, max(config.inp_address_bits, config.acc_address_bits)
    high = [2, min(4, config.inp_depth), min(4, config.wgt_depth)]
    dst, inp, wgt = (rng.integers(0, limit, config.uop_depth, dtype=np.uint32) for limit in high)
    return dst | inp << np.uint32(acc) | wgt << np.uint32(acc + src)


# --- programs ------------------------------------------------------------------------------------


def with_tokens(
    draw: DrawFn, body: Sequence[Instruction], *, repaired: bool, initial: Sequence[int] = (0, 0, 0, 0)
) -> list[Instruction]:
    """``body`` with random token flags toward existing neighbours.

    Args:
        repaired: leave out pops that find no token in program order, so that nothing deadlocks.
        initial: tokens in the counters before the program.
    """
    waiting = list(initial)
    result = []
    for instruction in body:
        flags = draw(st.integers(0, 15))
        unit = instruction.unit
        flagged = replace(
            instruction,
            pop_prev=bool(flags & 1) and unit.previous is not None,
            pop_next=bool(flags & 2) and unit.next is not None,
            push_prev=bool(flags & 4) and unit.previous is not None,
            push_next=bool(flags & 8) and unit.next is not None,
        )
        if repaired:
            empty = {counter.source for counter in pops(flagged) if not waiting[counter]}
            flagged = replace(
                flagged,
                pop_prev=flagged.pop_prev and unit.previous not in empty,
                pop_next=flagged.pop_next and unit.next not in empty,
            )
        for counter in pops(flagged):
            waiting[counter] -= 1
        for counter in pushes(flagged):
            waiting[counter] += 1
        result.append(flagged)
    return result


@st.composite
def programs(
    draw: DrawFn, config: Config, *, size: int = 8, wild: bool = False, **sizes: int
) -> list[Instruction]:
    """Up to ``size`` instructions and FINISH, most of them free of deadlock.

    Args:
        wild: now and then replace an instruction by any at all, which is mostly at fault.
        sizes: as :func:`transfers` takes them.
    """
    one = st.one_of(
        transfers(config, **sizes), transfers(config, **sizes), loops(config, iterations=2, uops=3)
    )
    body: list[Instruction] = draw(st.lists(one, max_size=size))
    repaired = draw(st.integers(0, 3)) > 0
    result = with_tokens(draw, [*body, Finish()], repaired=repaired)
    if wild and draw(st.integers(0, 3)) == 0:
        result[draw(st.integers(0, len(result) - 1))] = draw(any_instructions(config))
    return result

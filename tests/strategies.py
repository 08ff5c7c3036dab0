"""Random machines, instructions and programs, drawn from the declarations.

Single values are drawn so that Hypothesis sees every choice and shrinks it. Programs and timings are
built from a seed, since this gives a greater variety. Hypothesis chooses and shrinks the set of
instructions that stay in a program.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from hypothesis import reject, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from accel.base.errors import ConfigError
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import instruction_fault, most_taps, residual_change, residual_fault
from accel.core.isa import (
    TRANSFERS,
    Alu,
    Finish,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Loops,
    Mac,
    Products,
    Set,
    SetAcc,
    SetBytes,
    SetInp,
    SetOut,
    SetSum,
    SetWgt,
    Store,
    StoreAdd,
    StoreMul,
    StoreReq,
    Transfer,
    Unknown,
    alu_of,
    check_encodable,
    class_slots,
    classes_of,
    exists,
    loops_of,
    variants_of,
)
from accel.core.isa.field_widths import OPCODE_BITS
from accel.core.scratchpad_specs import RES
from accel.core.token_rules import pops, pushes

T = TypeVar("T")


def examples(count: int, *, least: int = 1) -> settings:
    """Settings with ``count`` examples in the profile ``whole``, and a proportional number in others.

    Args:
        least: examples in any profile, of a test that requires that certain cases are among them.
    """
    return settings(max_examples=max(least, count * settings().max_examples // 100))


def drawn(build: Callable[..., T], *args: Any, **options: Any) -> SearchStrategy[T]:
    """``build(rng, ...)`` with every choice made by Hypothesis."""
    return st.randoms(use_true_random=False).map(lambda rng: build(rng, *args, **options))


def seeded(build: Callable[..., T], *args: Any, **options: Any) -> SearchStrategy[T]:
    """``build(rng, ...)`` with a generator of which Hypothesis chooses the seed only."""
    return st.randoms(use_true_random=True).map(lambda rng: build(rng, *args, **options))


# --- machines ------------------------------------------------------------------------------------


FEATURES = {"tab_bytes": (0, 512, 4096), "res_mul": (0, 1), "wgt_zero": (0, 1)}
"""Values of the fields of features that random machines with ``post=1`` have."""


def machine_with(blocks: Sequence[int], depths: Sequence[int], **fields: Any) -> Config:
    """Return a machine whose instructions fit their words.

    Args:
        blocks: ``batch``, ``block_in`` and ``block_out``.
        depths: elements of uop, inp, wgt and acc.

    Raises:
        ConfigError: there is no such machine.
    """
    batch, block_in, block_out = blocks
    uop, inp, wgt, acc = depths
    config = Config(
        batch=batch,
        block_in=block_in,
        block_out=block_out,
        uop_bytes=4 * uop,
        inp_bytes=batch * block_in * inp,
        wgt_bytes=block_out * block_in * wgt,
        acc_bytes=4 * batch * block_out * acc,
        **fields,
    )
    check_encodable(config)
    return config


@st.composite
def geometries(draw: DrawFn, *, blocks: int = 256, depth_bits: int = 11) -> Config:
    """A machine of either generation whose instructions fit their words: elements of up to ``blocks`` rows
    or columns, scratchpads of 2 to ``2 ** depth_bits`` elements."""
    size = st.integers(0, blocks.bit_length() - 1).map(lambda bits: 1 << bits)
    batch, block_in, block_out = draw(size), draw(size), draw(size)
    if draw(st.booleans()):
        block_out = block_in
    depth = st.integers(1, depth_bits).map(lambda bits: 1 << bits)
    post = draw(st.integers(0, 1))
    features = {name: draw(st.sampled_from(values)) for name, values in FEATURES.items()} if post else {}
    depths = [draw(depth) for _ in range(4)]
    try:
        return machine_with((batch, block_in, block_out), depths, post=post, **features)
    except ConfigError:
        reject()


small_machines = geometries(blocks=4, depth_bits=5)
"""Scratchpads of 2 to 32 elements, so that indices meet often."""

machines = st.sampled_from([NAMED[name] for name in sorted(NAMED)]) | geometries()


_FEW = (1, 2, 3, 4)
RTL_VALUES = {
    "bus_bits": (64, 128, 256, 512),
    "outstanding": (*_FEW, 32),
    "max_burst_beats": (2, 4, 8, 64, 256),
    "fetch_buffer": (1, 2, 4, 64),
    "fetch_chunk": (1, 2, 4, 16),
    "load_queue": _FEW,
    "compute_queue": _FEW,
    "store_queue": _FEW,
    "loads_in_flight": _FEW,
    "stores_in_flight": _FEW,
    "tree_stages": (0, 1, 2, 3),
    "dispatch_stages": (0, 1, 2, 3),
    "token_bits": (1, 2, 8),
    "mul_slots": (1, 2, 3, 4, 5),
    "post_stages": (0, 1, 2, 5),
    "post_lanes": (1, 2, 4),
}
"""Values of the fields that hardware is built from and that do not change what a program means."""


def random_timing(rng: Random, base: Config) -> Config:
    def one(name: str) -> int:
        return rng.choice(RTL_VALUES[name])

    fetch_buffer = one("fetch_buffer")
    values = {name: rng.choice((1, one(name))) for name, few in RTL_VALUES.items() if few == _FEW}
    return replace(
        base,
        bus_bits=one("bus_bits"),
        read_latency=rng.randint(2, rng.choice((3, 24))),
        write_latency=rng.randint(1, rng.choice((3, 24))),
        outstanding=rng.choice((1, one("outstanding"))),
        max_burst_beats=one("max_burst_beats"),
        fetch_buffer=fetch_buffer,
        fetch_chunk=rng.choice([n for n in RTL_VALUES["fetch_chunk"] if n <= fetch_buffer]),
        tree_stages=one("tree_stages"),
        dispatch_stages=rng.choice((0, one("dispatch_stages"))),
        token_bits=rng.choice((8, 8, 8, 8, 8, 2, 1)),
        mul_slots=one("mul_slots"),
        serial=rng.choice((0, 0, 0, 0, 1)),
        **(_post_timing(rng, base) if base.post else {}),
        **values,
    )


def _post_timing(rng: Random, base: Config) -> dict[str, int]:
    lanes = [count for count in RTL_VALUES["post_lanes"] if count <= base.out_element_bytes]
    return {"post_stages": rng.choice(RTL_VALUES["post_stages"]), "post_lanes": rng.choice(lanes)}


def timings(base: Config) -> SearchStrategy[Config]:
    """``base`` with any timing that makes queues, buffers and counters run full now and then."""
    return seeded(random_timing, base)


# --- instructions --------------------------------------------------------------------------------


FINISHING = (LoadPar, LoadRes, LoadTab, StoreReq, StoreAdd, StoreMul, SetOut, SetSum)
"""Instructions for outputs that the store unit requantizes, some of them on a part of the machines."""


def any_instruction(rng: Random, config: Config, *, finishing: bool = True) -> Instruction:
    """With ``finishing`` it may be one of :data:`FINISHING`."""
    known, variants = classes_of(config), variants_of(config)
    chosen = [cls for cls in variants.values() if finishing or cls not in FINISHING]
    unknown = [opcode for opcode in range(1 << OPCODE_BITS) if opcode not in known]
    cls: type[Instruction] = rng.choice([*known.values(), *chosen, *([Unknown] if unknown else [])])
    others = {(opcode, memory) for opcode, memory, _ in variants}
    values: dict[str, Any] = {}
    for slot in class_slots(cls, config):
        value = rng.randint(slot.low, slot.high)
        values[slot.name] = bool(value) if slot.width == 1 and slot.spec.enum is None else value
    values["opcode"] = rng.choice(unknown) if cls is Unknown else int(cls.OPCODE)
    if cls.MEMORY is not None:
        values["memory"] = int(cls.MEMORY)
    elif any(cls is known.get(opcode) for opcode, _ in others):  # with an id that is none of its variants
        values["memory"] = rng.choice([n for n in range(8) if (int(cls.OPCODE), n) not in others])
    if cls.PART is not None:
        values["part"] = bool(cls.PART)
    return cls(**values)


def any_instructions(config: Config) -> SearchStrategy[Instruction]:
    """Any instruction that decoding can yield: each declared field with any value."""
    return drawn(any_instruction, config)


def _seldom(rng: Random, value: int, low: int, high: int) -> int:
    """``value`` now and then, else a number in ``low..high``."""
    return value if rng.randint(0, 9) == 9 else rng.randint(low, high)


def random_loops(
    rng: Random,
    config: Config,
    *,
    gemm: bool | None = None,
    iterations: int = 4,
    uops: int = 8,
    factor: int = 3,
) -> Loops:
    """An instruction of :func:`loops`."""
    cls: type[Loops] = rng.choice(
        [cls for cls in loops_of(config) if gemm is None or issubclass(cls, Products) is gemm]
    )
    slots = {slot.name: slot for slot in class_slots(cls, config)}
    begin = rng.randint(0, config.uop_depth - 1)
    values: dict[str, Any] = {
        name: _seldom(rng, rng.randint(0, slot.high), 0, min(factor, slot.high))
        for name, slot in slots.items()
        if "_factor_" in name
    }
    if issubclass(cls, Alu):
        imm = slots["imm"]
        values |= {
            "alu_op": rng.choice([code for code in config.operations if alu_of(code) is cls]),
            "use_imm": rng.choice((False, True)),
            "imm": rng.randint(*rng.choice(((-40, 40), (imm.low, imm.high)))),
        }
    flag = "reset" if "reset" in slots else "overwrite"
    values[flag] = rng.choice((False, False, True))
    if cls is Mac and config.depthwise:
        values["depthwise"] = rng.choice((False, True))
    return cls(
        uop_begin=begin,
        uop_end=_seldom(rng, max(0, begin - 1), begin + 1, min(begin + uops, config.uop_depth)),
        iter_out=_seldom(rng, 0, 1, iterations),
        iter_in=_seldom(rng, 0, 1, iterations),
        **values,
    )


def loops(config: Config, **options: Any) -> SearchStrategy[Any]:
    """Instructions with micro-ops whose indices are often, but not always, in range.

    Args:
        config: the machine.
        options: ``gemm``: only products (GEMM or MAC), or only ALU. ``iterations``, ``uops``,
            ``factor``: largest numbers of iterations, micro-ops and, as a rule, elements per iteration.
    """
    return drawn(random_loops, config, **options)


def random_transfer(
    rng: Random, config: Config, *, x_size: int = 5, y_size: int = 4, pad: int = 3, dram_bytes: int = 4096
) -> Transfer:
    """An instruction of :func:`transfers`."""
    others = [cls for cls in variants_of(config).values() if issubclass(cls, Transfer)]
    kinds = [*TRANSFERS, Store, *(cls for cls in others if cls not in FINISHING)]
    kind, route = rng.choice([(cls, route) for cls in kinds for route in cls.ROUTES.values()])
    element, depth = route.element_bytes(config), route.scratchpad.depth(config)
    padded = kind is Load and rng.choice((False, True))
    top, bottom, left, right = (rng.randint(0, pad) if padded else 0 for _ in range(4))
    width = rng.randint(1, max(1, min(x_size, depth - left - right)))
    if (left + width + right) * (top + 1 + bottom) > depth:
        top = bottom = 0
    most = max(0, min(y_size, depth // (left + width + right) - top - bottom))
    height = _seldom(rng, 0, min(1, most), most)
    room = depth - (left + width + right) * (top + height + bottom)
    elements = dram_bytes // element
    stride = rng.randint(0, max(0, min(2 * width, (elements - width) // max(1, height))))
    span = max(0, height - 1) * stride + width
    return kind(
        memory=int(route.memory),
        sram_base=rng.randint(0, max(0, room)),
        dram_base=rng.randint(0, max(0, elements - span)),
        y_size=height,
        x_size=_seldom(rng, 0, width, width),
        x_stride=stride,
        y_pad_0=top,
        y_pad_1=bottom,
        x_pad_0=left,
        x_pad_1=right,
    )


def transfers(config: Config, **options: Any) -> SearchStrategy[Any]:
    """LOADs and STOREs that stay within their scratchpad and the first bytes of DRAM, unless there is no
    room even for the smallest.

    Args:
        config: the machine.
        options: ``x_size``, ``y_size``, ``pad``: largest values. ``dram_bytes``: size of the used part
            of DRAM.
    """
    return drawn(random_transfer, config, **options)


def random_finishing(
    rng: Random,
    config: Config,
    *,
    x_size: int = 5,
    y_size: int = 4,
    dram_bytes: int = 4096,
    sets: bool = True,
    **_: int,
) -> Instruction:
    """One of :data:`FINISHING`, mostly without a fault of its own. The content of RES is ignored. Without
    ``sets`` there is no SET. Sizes are those of :func:`random_transfer`, up to the usual size of
    outputs."""
    present = [one for one in FINISHING if exists(one, config)]
    cls: type[Instruction] = rng.choice([one for one in present if sets or not issubclass(one, Set)])
    if issubclass(cls, Set):
        return _random_output(rng, cls, config)
    small = rng.randint(1, min(x_size, rng.choice((3, 9)))), rng.randint(1, min(y_size, 2))
    x_size, y_size = rng.choice((small, small, small[::-1]))
    values: dict[str, Any] = {
        "x_size": _seldom(rng, 0, x_size, x_size),
        "y_size": _seldom(rng, 0, y_size, y_size),
    }
    size = config.out_element_bytes
    if issubclass(cls, LoadPar | LoadTab):
        (route,) = cls.ROUTES.values()
        size, depth = route.element_bytes(config), route.scratchpad.depth(config)
        x_size = values["x_size"] = min(values["x_size"], depth)
        values["sram_base"] = rng.randint(0, max(0, depth - x_size * y_size))
    if issubclass(cls, StoreReq):
        values["sram_base"] = rng.randint(0, max(0, config.acc_depth - x_size * y_size))
        values |= rng.choice(({}, {"par_y": True}, {"par_x": True}))
        values["par"] = rng.randint(0, max(0, config.par_depth - max(x_size, y_size)))
        values["table"] = rng.choice((0, rng.randint(0, config.tab_depth)))
    if issubclass(cls, StoreAdd) and config.res_mul:
        values["hold"] = rng.choice((False, True))
    stride = rng.randint(0, 2 * x_size)
    span = (y_size - 1) * stride + x_size
    return cls(x_stride=stride, dram_base=rng.randint(0, max(0, dram_bytes // size - span)), **values)


def _random_output(rng: Random, cls: type[Set], config: Config) -> Set:
    """A SET of OUT that is not at fault: all of its numbers small, or any."""
    values: dict[str, Any] = {}
    some = rng.choice((2, 64, 1 << 62))
    for slot in class_slots(cls, config)[6 + (cls.MEMORY is not None) :]:
        value = rng.randint(max(slot.low, -some), min(slot.high, some))
        values[slot.name] = bool(value) if slot.width == 1 else value
    if "shift" in values:
        values["shift"] %= 42
    low, high = rng.choice(((-128, 127), (0, 255), (values["low"], values["high"])))
    return cls(**(values | {"low": low, "high": high}))


def random_set(rng: Random, config: Config) -> Set:
    """A SET of the load or the compute unit that is not at fault."""
    if rng.randint(0, 2) == 0:
        return random_taps(rng, config)
    unsigned = rng.choice((False, True))
    cls: type[SetBytes] = rng.choice([one for one in (SetInp, SetWgt) if exists(one, config)])
    low, high = cls(unsigned=unsigned).byte_range
    return cls(unsigned=unsigned, zero=rng.choice((low, high, 0, rng.randint(low, high))))


def random_taps(rng: Random, config: Config) -> SetAcc:
    """A valid SET.ACC, mostly with the largest number of taps for its step."""
    step = rng.choice((0, 1, 1, 1, 2, 3, rng.randint(0, 9)))
    most = most_taps(step, config)
    return SetAcc(unsigned=rng.choice((False, True)), taps=_seldom(rng, 0, 1, most), step=step)


# --- micro-ops -----------------------------------------------------------------------------------


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
    return np.asarray(dst | inp << np.uint32(acc) | wgt << np.uint32(acc + src), dtype=np.uint32)


# --- programs ------------------------------------------------------------------------------------


def _flagged(rng: Random, instruction: Instruction) -> Instruction:
    """``instruction`` with random token flags toward the neighbours that it has."""
    flags = [rng.randint(0, 2) == 0 for _ in range(4)]
    unit = instruction.unit
    return replace(
        instruction,
        pop_prev=flags[0] and unit.previous is not None,
        pop_next=flags[1] and unit.next is not None,
        push_prev=flags[2] and unit.previous is not None,
        push_next=flags[3] and unit.next is not None,
    )


def repaired(program: Sequence[Instruction], tokens: Sequence[int] = (0, 0, 0, 0)) -> list[Instruction]:
    """``program`` without the pops that find no token in program order; it cannot deadlock for others."""
    waiting = list(tokens)
    result = []
    for instruction in program:
        empty = {counter.source for counter in pops(instruction) if not waiting[counter]}
        kept = replace(
            instruction,
            pop_prev=instruction.pop_prev and instruction.unit.previous not in empty,
            pop_next=instruction.pop_next and instruction.unit.next not in empty,
        )
        for counter in pops(kept):
            waiting[counter] -= 1
        for counter in pushes(kept):
            waiting[counter] += 1
        result.append(kept)
    return result


def balanced(program: Sequence[Instruction], config: Config) -> list[Instruction]:
    """Return ``program`` with fewer residuals where RES would overflow or have too few."""
    held = 0
    result = []
    for instruction in program:
        one = instruction
        if isinstance(one, LoadRes | StoreAdd) and residual_fault(one, held, config) is not None:
            most = RES.depth(config) - held if one.FILLS else held
            width = min(one.x_size, most)
            one = replace(one, x_size=width, y_size=min(one.y_size, most // max(1, width)))
        if instruction_fault(one, config) is None:
            held += residual_change(one)
        result.append(one)
    return result


@st.composite
def programs(
    draw: DrawFn,
    /,
    config: Config,
    *,
    first: Sequence[Instruction] = (),
    size: int = 8,
    wild: bool = False,
    finishing: bool = False,
    factor: int = 3,
    **sizes: Any,
) -> list[Instruction]:
    """Up to ``size`` instructions and FINISH, most of them free of deadlock.

    Args:
        first: the first instructions.
        wild: sometimes replace an instruction by a random one, which is mostly invalid.
        finishing: with :data:`FINISHING`, where the machine has them; in some programs the store unit does
            little else, and hardly waits for others.
        factor: as :func:`loops` takes it.
        sizes: as :func:`transfers` takes them.
    """
    rng = draw(st.randoms(use_true_random=True))
    body: list[Instruction] = list(first)
    crowd = finishing and bool(config.post) and rng.randint(0, 2) == 0
    for _ in range(size):
        if crowd and rng.randint(0, 7):
            body.append(random_finishing(rng, config, sets=False, **sizes))
        elif config.post and rng.randint(0, 7) == 0:
            body.append(random_set(rng, config))
        elif config.post and finishing and rng.randint(0, 1) == 0:
            body.append(random_finishing(rng, config, **sizes))
        elif rng.choice((False, False, True)):
            body.append(random_loops(rng, config, iterations=2, uops=3, factor=factor))
            if isinstance(body[-1], Mac) and body[-1].depthwise and rng.randint(0, 3):
                body.insert(-1, random_taps(rng, config))
        else:
            body.append(random_transfer(rng, config, **sizes))
    body = [one if crowd and rng.randint(0, 7) else _flagged(rng, one) for one in [*body, Finish()]]
    if wild and rng.randint(0, 2) == 0:
        other = any_instruction(rng, config, finishing=finishing)
        if isinstance(other, Loops):
            other = replace(other, iter_out=other.iter_out % 4, iter_in=other.iter_in % 4)
        body[rng.randrange(len(body))] = other
    keep = draw(st.lists(st.integers(0, 7), min_size=len(body) - 1, max_size=len(body) - 1))
    program = [i for i, kept in zip(body, [*keep, 1], strict=True) if kept]
    if finishing and rng.randint(0, 7):
        program = balanced(program, config)
    return program if rng.randint(0, 7) == 0 else repaired(program)

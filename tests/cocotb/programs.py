"""Programs for the core's corner cases. Each has one possible order and finally stores
its results."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.records import replace
from accel.core.config import PAGE_BYTES, Config
from accel.core.isa import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Loops,
    Memory,
    Store,
    encode,
    encode_uops,
)
from accel.core.scratchpad_specs import Route
from accel.image.dram import Dram
from accel.run.program import Program
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads
from tests.strategies import random_loops, random_transfer

# Offsets in the DRAM window.
LOOSE = 3 * PAGE_BYTES
"""Random programs read and write below this offset."""
ZERO = 0x3FF0
"""Memory that no program writes, so it holds zeros."""
UOPS = 0x4FCC
CODE = 0x6000
DATA = 0x8000
RESULT = 0x40000
SHOWN = 48
"""Number of accumulators that programs store, except ``fill``."""


def program(
    config: Config, body: Sequence[Instruction], *segments: tuple[int, bytes], code: int = CODE
) -> Program:
    """A program of these instructions in this order, and FINISH."""
    return Program(
        config=config,
        code=encode([*ordered(body), Finish()], config),
        code_offset=code,
        segments=tuple(segments),
    )


def ordered(body: Sequence[Instruction]) -> list[Instruction]:
    """Add tokens to ``body`` that leave only one order, with empty LOADs of the compute unit
    where necessary."""
    chain: list[Instruction] = []
    for instruction in body:
        if chain and abs(chain[-1].unit - instruction.unit) == 2:
            _append(chain, Load(memory=Memory.UOP, **_NOTHING))
        _append(chain, instruction)
    return chain


_NOTHING = dict.fromkeys(("sram_base", "dram_base", "y_size", "x_size", "x_stride"), 0) | dict.fromkeys(
    ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), 0
)


def _append(chain: list[Instruction], following: Instruction) -> None:
    """Make ``following`` wait for the end of the chain."""
    if chain and chain[-1].unit < following.unit:
        chain[-1] = replace(chain[-1], push_next=True)
        following = replace(following, pop_prev=True)
    elif chain and chain[-1].unit > following.unit:
        chain[-1] = replace(chain[-1], push_prev=True)
        following = replace(following, pop_next=True)
    chain.append(following)


# --- instructions ---------------------------------------------------------------------------------


def _one_on(uops: tuple[int, int], steps: int) -> dict[str, int]:
    """Loop fields for ``steps`` iterations over a range of micro-ops. Each iteration
    advances by one element."""
    return {
        "uop_begin": uops[0],
        "uop_end": uops[1],
        "iter_in": steps,
        "dst_factor_out": 0,
        "dst_factor_in": 1,
        "src_factor_out": 0,
        "src_factor_in": 1,
    }


def _mover(memory: Memory) -> type[Load | Store]:
    """The LOAD or STORE route of a memory."""
    return Store if memory is Memory.OUT else Load


def _route(memory: Memory) -> Route:
    return _mover(memory).ROUTES[memory]


class Maker:
    """Builds instructions and programs of a machine; DRAM offsets are in bytes.

    The last micro-op is reserved for :meth:`show`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def move(
        self, memory: Memory, sram: int, offset: int, x: int, y: int = 1, stride: int = 0, **pads: int
    ) -> Any:
        """A LOAD, or a STORE for OUT. The stride is in elements."""
        size = _route(memory).element_bytes(self.config)
        assert offset % size == 0
        places = {
            "sram_base": sram,
            "dram_base": offset // size,
            "x_size": x,
            "y_size": y,
            "x_stride": stride,
        }
        return _mover(memory)(memory=memory, **(_NOTHING | places | pads))

    def alu(self, op: AluOp, imm: int, uops: tuple[int, int], *, steps: int = 1) -> Alu:
        """An immediate operation over a range of micro-ops. Each of ``steps`` iterations
        advances by one element."""
        return Alu(
            alu_op=op,
            use_imm=True,
            imm=imm,
            **_one_on(uops, steps),
        )

    def gemm(self, uops: tuple[int, int], *, steps: int = 1, reset: bool = False) -> Gemm:
        """A GEMM over a range of micro-ops. Each of ``steps`` iterations advances by one element
        in every scratchpad."""
        return Gemm(
            reset=reset,
            **_one_on(uops, steps),
            wgt_factor_out=0,
            wgt_factor_in=1,
        )

    def uops(self, rng: np.random.Generator, count: int, span: int = 16) -> npt.NDArray[np.uint32]:
        """Random micro-ops with valid indices below ``span``."""
        c = self.config
        limits = (c.acc_depth, min(c.inp_depth, c.acc_depth), c.wgt_depth)
        columns = [rng.integers(0, min(span, limit), count) for limit in limits]
        return encode_uops(np.stack(columns, axis=1), c)

    def show(self, target: int = RESULT, elements: int = SHOWN) -> list[Instruction]:
        """Store the first accumulators: byte 0 of each, then byte 1, and so on."""
        last = self.config.uop_depth - 1
        size = _route(Memory.OUT).element_bytes(self.config)
        body: list[Instruction] = [self.move(Memory.UOP, last, ZERO, 1)]
        for byte in range(4):
            body += [self.alu(AluOp.SHR, 8, (last, last + 1), steps=elements)] if byte else []
            body.append(self.move(Memory.OUT, 0, target + byte * elements * size, elements))
        return body

    # --- programs ---------------------------------------------------------------------------------

    def define(self, rng: np.random.Generator) -> Program:
        """Set the first elements of every scratchpad to known values."""
        c = self.config
        body, segments = [], []
        for n, memory in enumerate((Memory.UOP, Memory.INP, Memory.WGT, Memory.ACC)):
            offset = DATA + n * PAGE_BYTES
            body.append(self.move(memory, 0, offset, SHOWN))
            content = self.uops(rng, SHOWN).tobytes() if memory is Memory.UOP else None
            segments.append((offset, content or rng.bytes(SHOWN * _route(memory).element_bytes(c))))
        return program(c, body, *segments)

    def fill(self, rng: np.random.Generator) -> Program:
        """Fill every scratchpad with a single LOAD, which may exceed a burst. Then multiply all inputs with
        the first weights."""
        c = self.config
        contents = {
            Memory.UOP: self.uops(rng, c.uop_depth).tobytes(),
            Memory.INP: rng.bytes(c.inp_bytes),
            Memory.WGT: rng.bytes(c.wgt_bytes),
            Memory.ACC: rng.bytes(c.acc_bytes),
        }
        body: list[Instruction] = []
        segments = []
        offset = DATA
        for memory, content in contents.items():
            segments.append((offset, content))
            body.append(self.move(memory, 0, offset, _route(memory).scratchpad.depth(c)))
            offset += len(content)
        last = c.uop_depth - 1
        steps = min(c.inp_depth, c.wgt_depth, c.acc_depth)
        body += [self.move(Memory.UOP, last, ZERO, 1), self.gemm((last, last + 1), steps=steps)]
        body += self.show(elements=c.acc_depth)
        return program(c, body, *segments)

    def micro_ops(self, rng: np.random.Generator) -> Program:
        """Load micro-ops with odd addresses, counts, strides and targets, and use each of them."""
        body: list[Instruction] = []
        for n, (start, x, y, stride, sram) in enumerate(
            [
                (1, 1, 1, 0, 1),
                (3, 7, 1, 0, 5),
                (5, 2, 3, 5, 13),
                (7, 9, 2, 11, 21),
                (2, 3, 4, 3, 41),
                (15, 17, 1, 0, 3),
            ]
        ):
            body.append(self.move(Memory.UOP, sram, UOPS + 4 * start, x, y, stride))
            body.append(self.alu(AluOp.ADD, 3 * n + 1, (sram, sram + x * y)))
            body.append(self.alu(AluOp.MUL, -3, (sram + x * y - 1, sram + x * y)))
        clear = [self.move(Memory.ACC, 0, DATA, SHOWN)]
        content = rng.bytes(self.config.acc_bytes)
        uops = self.uops(rng, 64)
        return program(self.config, [*clear, *body, *self.show()], (UOPS, uops.tobytes()), (DATA, content))

    def pages(self, rng: np.random.Generator) -> Program:
        """Rows cross 4 KiB boundaries after one element, half-way, and in every row of a strided box. This
        holds for every scratchpad and in both directions. The program's code crosses a boundary, too."""
        c = self.config
        body: list[Instruction] = [self.move(Memory.ACC, 0, DATA, SHOWN)]
        segments = [(DATA, rng.bytes(c.acc_bytes))]
        area = DATA + 4 * PAGE_BYTES
        segments.append((area, rng.bytes(4 * PAGE_BYTES)))
        for memory in (Memory.INP, Memory.WGT, Memory.ACC, Memory.ACC_8BIT):
            size = _route(memory).element_bytes(c)
            page = PAGE_BYTES // size
            body += [
                self.move(memory, 1, area + PAGE_BYTES - size, 2),
                self.move(memory, 4, area + PAGE_BYTES - 5 * size, 9),
                self.move(memory, 16, area + PAGE_BYTES - 3 * size, 5, 3, page),
            ]
        last = c.uop_depth - 1
        body += [self.move(Memory.UOP, last, ZERO, 1), self.gemm((last, last + 1), steps=32)]
        size = _route(Memory.OUT).element_bytes(c)
        target = RESULT + 4 * PAGE_BYTES
        body += [
            self.move(Memory.OUT, 3, target + PAGE_BYTES - size, 2),
            self.move(Memory.OUT, 0, target + 3 * PAGE_BYTES - 3 * size, 7, 4, PAGE_BYTES // size),
            self.move(Memory.OUT, 8, target + 8 * PAGE_BYTES - 16 * size, 32),
        ]
        return program(c, [*body, *self.show()], *segments, code=CODE + PAGE_BYTES - 16)

    def nothing(self, rng: np.random.Generator) -> Program:
        """Mix all kinds of empty instructions with others: no elements, only padding rows, no iterations, no
        micro-ops, and an empty STORE with the memory id that TVM gives it."""
        c = self.config
        last = c.uop_depth - 1
        nothing = self.gemm((last, last + 1))
        body: list[Instruction] = [self.move(Memory.ACC, 0, DATA, SHOWN)]
        for memory in (Memory.UOP, Memory.INP, Memory.WGT, Memory.ACC, Memory.ACC_8BIT, Memory.OUT):
            body.append(self.move(memory, 0, 0, 0, 3))
            body.append(self.move(memory, 0, 0, 0, 0))
        body += [
            self.move(Memory.OUT, 2, RESULT, 4, 0),
            replace(self.move(Memory.OUT, 0xFFFF, 0, 0), memory=int(Memory.UOP)),
            self.move(Memory.ACC, 7, DATA, 2, 0, y_pad_0=1, y_pad_1=2, x_pad_0=1),
            self.move(Memory.INP, 7, DATA, 2, 0, y_pad_0=1),
            replace(nothing, iter_in=0),
            replace(nothing, iter_out=0),
            replace(nothing, uop_end=last),
            replace(nothing, uop_begin=1, uop_end=0),
            replace(self.alu(AluOp.ADD, 5, (last, last + 1)), iter_in=0),
        ]
        return program(c, [*body, *self.show()], (DATA, rng.bytes(c.acc_bytes)))

    def lanes(self, rng: np.random.Generator) -> Program:
        """STOREs of one to nine elements start at each lane of a beat, over memory with other contents. LOADs
        with padding start at each lane, too."""
        c = self.config
        size = _route(Memory.OUT).element_bytes(c)
        lanes = max(1, c.bus_bytes // size)
        body: list[Instruction] = [self.move(Memory.ACC, 0, DATA, SHOWN)]
        area = DATA + 2 * PAGE_BYTES
        for lane in range(lanes):
            for n, x in enumerate((1, 2, 3, 9)):
                target = RESULT + (16 * (4 * lane + n) + lane) * size
                body.append(self.move(Memory.OUT, 5 * lane + n, target, x, 2, 11))
            body.append(
                self.move(Memory.ACC_8BIT, 32 + 4 * lane, area + lane * size, 1, 1, x_pad_0=1, x_pad_1=2)
            )
            body.append(
                self.move(Memory.INP, 8 * lane, area + lane * c.inp_element_bytes, 3, 2, 5, x_pad_1=1)
            )
        last = c.uop_depth - 1
        body += [self.move(Memory.WGT, 0, area, SHOWN), self.move(Memory.UOP, last, ZERO, 1)]
        body += [self.gemm((last, last + 1), steps=SHOWN)]
        segments = ((DATA, rng.bytes(c.acc_bytes)), (area, rng.bytes(PAGE_BYTES)))
        before = (RESULT, rng.bytes(1024 * size))
        return program(c, [*body, *self.show(RESULT + 0x8000)], *segments, before)

    def at_the_end(self, rng: np.random.Generator) -> Program:
        """Read and write the last bytes of the DRAM window."""
        c = self.config
        size = _route(Memory.OUT).element_bytes(c)
        body = [
            self.move(Memory.ACC, 0, DATA, SHOWN),
            self.move(Memory.ACC_8BIT, 3, c.mem_size - 3 * size, 3),
            self.move(Memory.INP, 0, c.mem_size - c.inp_element_bytes, 1),
            self.move(Memory.OUT, 0, c.mem_size - size, 1),
        ]
        segments = ((DATA, rng.bytes(c.acc_bytes)), (c.mem_size - 64, rng.bytes(64)))
        return program(c, [*body, *self.show()], *segments)

    def anything(self, rng: random.Random, pads: Scratchpads, dram: Dram, size: int = 12) -> Program:
        """Random instructions that cause no fault with the given scratchpads and memory, which
        stay unchanged."""
        numbers = np.random.default_rng(rng.getrandbits(32))
        segments = (UOPS, self.uops(numbers, 64).tobytes()), (0, numbers.bytes(LOOSE))
        memory = dram.copy()
        for offset, content in segments:
            memory.write(self.config.mem_base + offset, content)
        executor = Executor(self.config, memory, pads.copy())
        body: list[Instruction] = []
        while len(body) < size:
            instruction = self._any(rng)
            before = executor.pads.copy()
            if executor.execute(instruction) is None:
                body.append(instruction)
            else:
                executor = Executor(self.config, memory, before)
        return program(self.config, [*body, *self.show()], *segments)

    def _any(self, rng: random.Random) -> Instruction:
        kind = rng.choice(("uops", "loops", "loops", "transfer", "transfer", "transfer"))
        if kind == "uops":
            x, y = rng.randint(1, 9), rng.randint(1, 3)
            return self.move(
                Memory.UOP, rng.randint(0, 200), UOPS + 4 * rng.randint(0, 16), x, y, rng.randint(0, 12)
            )
        if kind == "loops":
            loops: Loops = random_loops(rng, self.config, iterations=3, uops=5)
            begin = loops.uop_begin % 64
            return replace(loops, uop_begin=begin, uop_end=begin + max(0, loops.uop_end - loops.uop_begin))
        while True:
            transfer = random_transfer(rng, self.config, x_size=20, y_size=5, dram_bytes=LOOSE)
            if transfer.memory != Memory.UOP:
                return transfer

"""The instruction set as plain Python loops over single bytes and integers, straight from its prose.

Slow, and independent of the simulators on purpose: it shares no code with them. It notes every element
that it touches.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from accel.core.config import Config
from accel.core.isa import (
    Alu,
    Gemm,
    Instruction,
    Load,
    Loops,
    Mac,
    Set,
    SetAcc,
    SetBytes,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
)
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads

UOP, WGT, INP, ACC, OUT, ACC_8BIT, SIX, SEVEN = range(8)
PAR, RES = REQ, ADDED = SIX, SEVEN
TAB, MULTIPLIED = OUT, ACC_8BIT
MIN, MAX, ADD, SHR, MUL = range(5)
NAMES = {UOP: "uop", WGT: "wgt", INP: "inp", ACC: "acc", OUT: "acc", ACC_8BIT: "acc"}

Access = tuple[str, bool, int]
"""Memory, whether it is written, and the element, or the address for ``dram``."""


def signed(value: int, bits: int) -> int:
    """The low ``bits`` bits as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def operate(op: int, x: int, y: int) -> int:
    if op == MIN:
        return min(x, y)
    if op == MAX:
        return max(x, y)
    if op == ADD:
        return signed(x + y, 32)
    if op == MUL:
        return signed(x * y, 32)
    if y >= 0:
        return x >> min(y, 31)
    return signed(x << -y, 32) if -y < 32 else 0


def requantized(acc: int, bias: int, scale: int) -> int:
    """``rne(float32(acc + bias) * scale)``, with every rounding of float32 done on exact numbers."""
    x = signed(acc + bias, 32)
    exponent = abs(x).bit_length() - 24
    significand = round(abs(x) / Fraction(2) ** exponent)
    product = significand * (scale & 0xFFFFFF)
    last = 24 if product >> 47 else 23
    y = round(round(product / Fraction(2) ** last) * Fraction(2) ** (last + exponent - (scale >> 24)))
    return -y if x < 0 else y


def clamped(value: int, s: SetOut | SetSum) -> int:
    return min(max(value + s.zero, s.low), s.high)


class Reference:
    """Scratchpads and DRAM as lists and dictionaries.

    Attributes:
        seen: all accesses so far.
    """

    def __init__(self, config: Config, pads: Scratchpads, dram: Dram) -> None:
        self.config = config
        self.uop: list[int] = pads.uop.tolist()
        self.inp: list[list[list[int]]] = pads.inp.tolist()
        self.wgt: list[list[list[int]]] = pads.wgt.tolist()
        self.acc: list[list[list[int]]] = pads.acc.tolist()
        self.par: list[list[list[int]]] = [] if pads.par is None else pads.par.tolist()
        self.res: list[list[list[int]]] = [] if pads.res is None else pads.res.tolist()
        self.tab: list[list[list[int]]] = [] if pads.tab is None else pads.tab.tolist()
        self.dram: dict[int, int] = {
            address + offset: byte
            for address, page in dram.pages()
            for offset, byte in enumerate(page.tolist())
            if byte
        }
        self.seen: set[Access] = set()
        self.acc_unsigned = False
        self.bytes_read = {INP: (False, 0), WGT: (False, 0)}
        """By memory, whether LOADs read uint8, and the zero point that they subtract."""
        self.out, self.sum = SetOut(), SetSum()
        self.loaded = self.taken = 0
        self.taps = self.step_of_taps = 0

    def copy(self) -> "Reference":
        """An independent copy with nothing seen."""
        twin = object.__new__(Reference)
        twin.config = self.config
        twin.uop = list(self.uop)
        twin.inp, twin.wgt, twin.acc, twin.par, twin.res, twin.tab = (
            [[list(row) for row in element] for element in pad]
            for pad in (self.inp, self.wgt, self.acc, self.par, self.res, self.tab)
        )
        twin.dram = dict(self.dram)
        twin.acc_unsigned = self.acc_unsigned
        twin.bytes_read = dict(self.bytes_read)
        twin.out, twin.sum = self.out, self.sum
        twin.loaded, twin.taken = self.loaded, self.taken
        twin.taps, twin.step_of_taps = self.taps, self.step_of_taps
        twin.seen = set()
        return twin

    def state(self) -> str:
        """All memory, to compare."""
        dram = sorted((address, byte) for address, byte in self.dram.items() if byte)
        return repr((self.uop, self.inp, self.wgt, self.acc, self.par, self.res, self.tab, dram))

    def pads(self) -> Scratchpads:
        return Scratchpads(
            uop=np.array(self.uop, dtype=np.uint32),
            inp=np.array(self.inp, dtype=np.int16 if self.config.post else np.int8),
            wgt=np.array(self.wgt, dtype=np.int16 if self.config.wgt_zero else np.int8),
            acc=np.array(self.acc, dtype=np.int32),
            par=np.array(self.par, dtype=np.int32) if self.config.post else None,
            res=np.array(self.res, dtype=np.int8) if self.config.post else None,
            tab=np.array(self.tab, dtype=np.uint8) if self.config.tab_bytes else None,
        )

    def memory(self) -> Dram:
        dram = Dram.of(self.config)
        for address, byte in self.dram.items():
            dram.write(address, bytes([byte]))
        return dram

    def execute(self, instruction: Instruction, *, checked: bool = True) -> tuple[int, str] | None:
        """None, or the micro-ops executed before an error, and its cause; without ``checked`` errors before
        the start are not looked for."""
        cause = self.fault(instruction) if checked else None
        if cause is not None:
            return 0, cause
        if isinstance(instruction, Load) and instruction.x_size:
            self.load(instruction)
        elif isinstance(instruction, Store) and instruction.x_size:
            self.store(instruction)
        elif isinstance(instruction, SetBytes):
            self.bytes_read[instruction.memory] = instruction.unsigned, instruction.zero
        elif isinstance(instruction, SetAcc):
            self.acc_unsigned = instruction.unsigned
            self.taps, self.step_of_taps = instruction.taps, instruction.step
        elif isinstance(instruction, SetOut):
            self.out = instruction
        elif isinstance(instruction, SetSum):
            self.sum = instruction
        elif isinstance(instruction, Loops):
            for number, (dst, src, wgt) in enumerate(self.indices(instruction)):
                cause = self.step(instruction, dst, src, wgt)
                if cause is not None:
                    return number, cause
        return None

    # --- errors ----------------------------------------------------------------------------------

    def fault(self, i: Instruction) -> str | None:
        """Return the fault of an instruction before it starts."""
        set_by_load = (INP, WGT) if self.config.wgt_zero else (INP,)
        loads = isinstance(i, Load) and i.memory in (INP, WGT)
        loads = loads or (isinstance(i, Set) and i.memory in set_by_load)
        stores = isinstance(i, Store) or (isinstance(i, Set) and i.memory == OUT)
        stores = stores or (isinstance(i, Load) and i.memory in self.loaded_by_store)
        if (loads and (i.pop_prev or i.push_prev)) or (stores and (i.pop_next or i.push_next)):
            return "neighbour"
        if isinstance(i, Transfer) and i.x_size:
            return self.transfer_fault(i)
        if isinstance(i, Alu) and i.alu_op > MUL:
            return "alu-op"
        if isinstance(i, Mac) and i.depthwise and self.config.block_in != self.config.block_out:
            return "reserved"
        if isinstance(i, Set) and i.memory not in (*set_by_load, ACC, OUT):
            return "memory-id"
        if isinstance(i, SetBytes) and not (0 <= i.zero < 256 if i.unsigned else -128 <= i.zero < 128):
            return "zero-point"
        if isinstance(i, SetOut) and i.shift > 41:
            return "reserved"
        if isinstance(i, SetAcc) and not self.taps_fit(i):
            return "reserved"
        runs = isinstance(i, Loops) and i.iter_out and i.iter_in and i.uop_begin < i.uop_end
        if isinstance(i, Loops) and runs and i.uop_end > len(self.uop):
            return "uop-range"
        return "reserved" if isinstance(i, Mac) and i.depthwise and not self.taps else None

    @property
    def loaded_by_store(self) -> dict[int, str]:
        """The scratchpads that the store unit loads, by memory id."""
        own = {PAR: "par", RES: "res"} if self.config.post else {}
        return own | ({TAB: "tab"} if self.config.tab_bytes else {})

    def taps_fit(self, i: SetAcc) -> bool:
        """Whether no two taps are in one bank of inp, and each has a column of wgt."""
        banks = self.config.tap_banks
        places = {tap * i.step % banks for tap in range(i.taps)}
        return len(places) == i.taps and i.taps <= self.config.block_in

    def transfer_fault(self, i: Transfer) -> str | None:
        post = self.config.post == 1
        stored = (ACC, OUT, REQ, ADDED, *((MULTIPLIED,) if self.config.res_mul else ())) if post else (OUT,)
        loaded = (UOP, WGT, INP, ACC, ACC_8BIT, *self.loaded_by_store)
        if i.memory not in (loaded if isinstance(i, Load) else stored):
            return "memory-id"
        padded = i.y_pad_0 or i.y_pad_1 or i.x_pad_0 or i.x_pad_1
        if padded and (isinstance(i, Store) or i.memory in self.loaded_by_store):
            return "store-pad"
        moved = i.x_size * i.y_size
        if isinstance(i, Load) and i.memory == RES:
            if i.sram_base:
                return "reserved"
        else:
            if isinstance(i, StoreReq) and i.par_y and i.par_x:
                return "reserved"
            depth = len(self.pad(i))
            box = (i.x_pad_0 + i.x_size + i.x_pad_1) * (i.y_pad_0 + i.y_size + i.y_pad_1)
            if i.sram_base + box > depth:
                return "sram-range"
            steps = (i.y_size * i.par_y or i.x_size * i.par_x or 1) if isinstance(i, StoreReq) else 0
            if isinstance(i, StoreReq) and i.par + (steps if moved else 0) > len(self.par):
                return "sram-range"
            if isinstance(i, StoreReq) and i.table and i.table - 1 + bool(moved) > len(self.tab):
                return "sram-range"
        low, size = self.config.mem_base, self.config.mem_size
        if any(not low <= address < low + size for row in self.rows(i) for address in (row[0], row[-1])):
            return "dram-range"
        held = self.loaded - self.taken
        if isinstance(i, Load) and i.memory == RES and moved and held + moved > len(self.res):
            return "residual-full"
        if isinstance(i, StoreAdd) and (min(moved, 1) if i.hold else moved) > held:
            return "residual-empty"
        return None

    # --- transfers -------------------------------------------------------------------------------

    def pad(self, i: Transfer) -> list[list[list[int]]]:
        """The scratchpad that a transfer moves."""
        name = NAMES.get(i.memory, "acc")
        if isinstance(i, Load):
            name = self.loaded_by_store.get(i.memory, name)
        pad: list[list[list[int]]] = getattr(self, name)
        return pad

    def element_bytes(self, i: Transfer) -> int:
        c = self.config
        if isinstance(i, Load) and i.memory == PAR:
            return c.block_out * 8
        if isinstance(i, Load) and i.memory == TAB:
            return 256
        sizes: dict[int, int] = {
            UOP: 4,
            WGT: c.block_out * c.block_in,
            INP: c.batch * c.block_in,
            ACC: c.batch * c.block_out * 4,
            OUT: c.batch * c.block_out,
            ACC_8BIT: c.batch * c.block_out,
        }
        return sizes.get(i.memory, c.batch * c.block_out)

    def rows(self, i: Transfer) -> Iterator[range]:
        """The addresses of each row."""
        size = self.element_bytes(i)
        for y in range(i.y_size):
            start = self.config.mem_base + (i.dram_base + y * i.x_stride) * size
            yield range(start, start + i.x_size * size)

    def load(self, i: Load) -> None:
        size = self.element_bytes(i)
        addresses = list(self.rows(i))
        element = i.sram_base
        if i.memory == RES:
            element = self.loaded % len(self.res)
            self.loaded += i.x_size * i.y_size
        for y in range(-i.y_pad_0, i.y_size + i.y_pad_1):
            for x in range(-i.x_pad_0, i.x_size + i.x_pad_1):
                data = None
                if 0 <= y < i.y_size and 0 <= x < i.x_size:
                    data = [self.read_byte(a) for a in addresses[y][x * size : (x + 1) * size]]
                self.fill(i.memory, element, data)
                element += 1
                if i.memory == RES:
                    element %= len(self.res)

    def fill(self, memory: int, element: int, data: list[int] | None) -> None:
        """Fill an element with bytes from DRAM, or with zeros."""
        name = self.loaded_by_store.get(memory) or NAMES[memory]
        if memory != RES:
            self.seen.add((name, True, element))
        if data is None:
            if memory == UOP:
                self.uop[element] = 0
            else:
                for row in getattr(self, name)[element]:
                    row[:] = [0] * len(row)
            return
        if memory == UOP:
            self.uop[element] = int.from_bytes(bytes(data), "little")
            return
        width = 4 if memory in (ACC, PAR) else 1
        settings = {**self.bytes_read, ACC_8BIT: (self.acc_unsigned, 0)}
        unsigned, zero = settings.get(memory, (memory == TAB, 0))
        values = [
            int.from_bytes(bytes(data[n : n + width]), "little", signed=not unsigned) - zero
            for n in range(0, len(data), width)
        ]
        rows = getattr(self, name)[element]
        for row in rows:
            row[:] = values[: len(row)]
            del values[: len(row)]

    def store(self, i: Store) -> None:
        element, width = i.sram_base, 4 if i.memory == ACC else 1
        for y, row in enumerate(self.rows(i)):
            addresses = iter(row)
            for x in range(i.x_size):
                self.seen.add(("acc", False, element))
                finished = self.finish(i, y, x, self.acc[element]) if isinstance(i, StoreReq) else None
                for values in self.acc[element] if finished is None else finished:
                    for value in values:
                        for n in range(width):
                            self.write_byte(next(addresses), value >> 8 * n & 255)
                element += 1
        if isinstance(i, StoreAdd) and i.hold and i.y_size:
            self.taken += 1

    def finish(self, i: StoreReq, y: int, x: int, acc: list[list[int]]) -> list[list[int]]:
        """An element of accumulators as STORE.REQ, STORE.ADD or STORE.MUL has them."""
        place = i.par + (y if i.par_y else x if i.par_x else 0)
        self.seen.add(("par", False, place))
        rows = [
            [
                clamped(requantized(value, bias, scale & 0xFFFFFFFF), self.out)
                for value, (bias, scale) in zip(row, self.par[place], strict=True)
            ]
            for row in acc
        ]
        if i.table:
            self.seen.add(("tab", False, i.table - 1))
            unsigned = self.out.table_unsigned
            table = [byte if unsigned else signed(byte, 8) for byte in self.tab[i.table - 1][0]]
            rows = [[table[value % 256] for value in row] for row in rows]
        if not isinstance(i, StoreAdd):
            return rows
        oldest = self.res[self.taken % len(self.res)]
        self.taken += not i.hold
        combine = self.multiply if i.memory == MULTIPLIED else self.add
        return [
            [combine(*pair) for pair in zip(*both, strict=True)] for both in zip(rows, oldest, strict=True)
        ]

    def add(self, left: int, right: int) -> int:
        s, t = self.out, self.sum
        right = right % 256 if s.unsigned else right
        total = (left - s.left_zero) * t.left_multiplier + (right - s.right_zero) * t.right_multiplier
        return clamped(round(Fraction(total + s.offset, 1 << s.shift)), t)

    def multiply(self, left: int, right: int) -> int:
        s, t = self.out, self.sum
        right = right % 256 if s.unsigned else right
        total = signed(left - s.left_zero, 9) * signed(right - s.right_zero, 9) * t.left_multiplier
        return clamped(round(Fraction(total + s.offset, 1 << s.shift)), t)

    def read_byte(self, address: int) -> int:
        self.seen.add(("dram", False, address))
        return self.dram.get(address, 0)

    def write_byte(self, address: int, value: int) -> None:
        self.seen.add(("dram", True, address))
        self.dram[address] = value

    # --- micro-ops -------------------------------------------------------------------------------

    def indices(self, i: Loops) -> Iterator[tuple[int, int, int]]:
        """dst, src and wgt of each micro-op, in order."""
        c = self.config
        dst_bits = (c.acc_depth - 1).bit_length()
        src_bits = max(dst_bits, (c.inp_depth - 1).bit_length())
        wgt_bits = (c.wgt_depth - 1).bit_length()
        wgt_out, wgt_in = (i.wgt_factor_out, i.wgt_factor_in) if isinstance(i, Gemm | Mac) else (0, 0)
        assert isinstance(i, Gemm | Mac | Alu)
        for outer in range(i.iter_out):
            for inner in range(i.iter_in):
                for number in range(i.uop_begin, i.uop_end):
                    self.seen.add(("uop", False, number))
                    word = self.uop[number]
                    dst = word % (1 << dst_bits)
                    src = (word >> dst_bits) % (1 << src_bits)
                    wgt = (word >> (dst_bits + src_bits)) % (1 << wgt_bits)
                    yield (
                        dst + outer * i.dst_factor_out + inner * i.dst_factor_in,
                        src + outer * i.src_factor_out + inner * i.src_factor_in,
                        wgt + outer * wgt_out + inner * wgt_in,
                    )

    def step(self, i: Loops, dst: int, src: int, wgt: int) -> str | None:
        """One micro-op; the cause if an index that it uses is out of range."""
        gemm = isinstance(i, Gemm | Mac)
        reset, overwrite = isinstance(i, Gemm) and i.reset, isinstance(i, Mac) and i.overwrite
        uses_src = not i.use_imm if isinstance(i, Alu) else not reset
        if dst >= len(self.acc):
            return "dst-index"
        depthwise = isinstance(i, Mac) and i.depthwise
        taps = [src + tap * self.step_of_taps for tap in range(self.taps)] if depthwise else [src]
        if uses_src and max(taps) >= len(self.inp if gemm else self.acc):
            return "src-index"
        if gemm and uses_src and wgt >= len(self.wgt):
            return "wgt-index"
        if uses_src:
            self.seen |= {("inp" if gemm else "acc", False, place) for place in taps}
        if gemm and uses_src:
            self.seen.add(("wgt", False, wgt))
        if not (reset or overwrite):
            self.seen.add(("acc", False, dst))
        self.seen.add(("acc", True, dst))
        for b, row in enumerate(self.acc[dst]):
            for o, value in enumerate(row):
                if isinstance(i, Alu):
                    row[o] = operate(i.alu_op, value, i.imm if i.use_imm else self.acc[src][b][o])
                elif reset:
                    row[o] = 0
                elif depthwise:
                    factors = [(self.inp[place][b][o], self.wgt[wgt][o][t]) for t, place in enumerate(taps)]
                    row[o] = signed((0 if overwrite else value) + sum(x * w for x, w in factors), 32)
                else:
                    products = zip(self.inp[src][b], self.wgt[wgt][o], strict=True)
                    row[o] = signed((0 if overwrite else value) + sum(x * w for x, w in products), 32)
        return None


def assert_same_effect(
    config: Config, pads: Scratchpads, instruction: Instruction, dram: Dram | None = None
) -> None:
    """The executor and this interpreter agree on memory and on the error after one instruction.

    ``pads`` and ``dram`` hold the executor's result afterwards.
    """
    dram = Dram.of(config) if dram is None else dram
    reference = Reference(config, pads, dram)
    expected = reference.execute(instruction)
    found = Executor(config, dram, pads).execute(instruction)
    assert (None if found is None else (found[0], found[1].cause.label)) == expected
    assert_same_pads(pads, reference.pads())
    assert dram == reference.memory()


def assert_same_pads(found: Scratchpads, expected: Scratchpads) -> None:
    for name in ("uop", "inp", "wgt", "acc", "par", "res", "tab"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)

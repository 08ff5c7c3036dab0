"""Random programs for lockstep, with memory contents, timing and limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from accel.base.records import replace
from accel.compiler.codegen.token_insertion import insert_tokens
from accel.core.config import RUN_FIELDS, Config
from accel.core.isa import (
    Finish,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    Memory,
    SetOut,
    SetSum,
    Store,
    encode,
    format_instruction,
)
from accel.core.requantize import MULTIPLIER_BITS
from accel.image.test_scenario import Contents, Start
from accel.proof.shared_dram import SharedDram
from accel.run.program import Program
from tests.lockstep.builds import BUILDS
from tests.strategies import micro_ops, programs

DATA_BYTES = 4096
"""LOADs read these bytes. They begin with the micro-ops."""
STORED_BYTES = 4096
"""After them, the bytes that STOREs write and some LOADs read."""
SIZES = {"x_size": 20, "dram_bytes": DATA_BYTES}
_CODE = 1 << 14


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A program and the settings of its run.

    Attributes:
        config: a build with the settings of this run.
        words: the micro-ops in DRAM and in uop.
        code_offset: the program's offset in DRAM, in instructions.
        seed: seed of the contents of DRAM and scratchpads.
    """

    build: str
    config: Config
    body: tuple[Instruction, ...]
    words: npt.NDArray[np.uint32]
    code_offset: int
    seed: int
    max_cycles: int

    @cached_property
    def data(self) -> npt.NDArray[np.uint8]:
        """DRAM without the program."""
        return memory(self.seed, self.words)

    @cached_property
    def program(self) -> Program:
        return Program(
            config=self.config,
            code=encode(self.body, self.config),
            code_offset=_CODE + 16 * self.code_offset,
            segments=((0, self.data.tobytes()),),
            start=Start(contents=(Contents(scratchpad="uop", element=0, data=self.words.tobytes()),)),
        )

    def __repr__(self) -> str:
        timing = ", ".join(f"{name}={getattr(self.config, name)}" for name in sorted(RUN_FIELDS))
        lines = [f"build {self.build!r}: {timing}", f"seed {self.seed}, code_offset {self.code_offset}"]
        lines += [f"max_cycles {self.max_cycles}", f"micro-ops {self.words.tolist()}"]
        return "\n".join([*lines, *map(format_instruction, self.body)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def memory(seed: int, words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Micro-ops, then random bytes. Half of the words in the read part are scales that bring accumulators
    close to the range of bytes."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, DATA_BYTES + STORED_BYTES, dtype=np.uint8)
    scales = data.view(np.uint32)[1 : DATA_BYTES // 8 : 2]
    leading = np.uint32(1 << (MULTIPLIER_BITS - 1))
    exponents = rng.integers(MULTIPLIER_BITS, 2 * MULTIPLIER_BITS + 6, len(scales), dtype=np.uint32)
    scales[:] = (scales & (2 * leading - 1)) | leading | exponents << np.uint32(MULTIPLIER_BITS)
    data[: words.nbytes] = words.view(np.uint8)[:DATA_BYTES]
    return data


def run_settings(config: Config) -> st.SearchStrategy[Config]:
    """Draw the fields of a configuration that are set at run time."""
    latency = st.integers(0, 3) | st.integers(0, 30)
    return st.builds(
        lambda read, write, serial, page: config.override(
            {
                "read_latency": 2 + read,
                "write_latency": 1 + write,
                "serial": serial,
                "mem_base": 4096 * page,
                "mem_size": 1 << 20,
            }
        ),
        latency,
        latency,
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((0, 0, 5, (1 << 28) - 256)),
    )


@st.composite
def cases(draw: DrawFn, builds: Mapping[str, Config] = BUILDS) -> Case:
    """A legal program with the necessary tokens, or any program with random tokens."""
    build = draw(st.sampled_from(list(builds)))
    config = draw(run_settings(builds[build]))
    seed = draw(st.integers(0, 1 << 16))
    words = draw(micro_ops(config))
    in_dram = memory(seed, words)[:DATA_BYTES].view(np.uint32)
    body = draw(ordered(config, in_dram) if draw(st.integers(0, 2)) else wild(config))
    limited = draw(st.integers(0, 7)) == 0
    return Case(
        build=build,
        config=config,
        body=tuple(body),
        words=words,
        code_offset=draw(st.sampled_from((0, 1, 3, 254))),
        seed=seed,
        max_cycles=draw(st.integers(1, 300)) if limited else 1 << 30,
    )


@st.composite
def wild(draw: DrawFn, config: Config) -> list[Instruction]:
    """Random tokens, and sometimes a faulty instruction."""
    body = draw(programs(config, wild=True, size=10, finishing=True, **SIZES))
    return [_moved(one, config) if isinstance(one, Store) else one for one in body]


@st.composite
def ordered(draw: DrawFn, config: Config, words: npt.NDArray[np.uint32]) -> list[Instruction]:
    """Tokens exactly where instructions depend on each other. ``words`` are the micro-ops in DRAM."""
    depth = config.uop_depth
    body: list[Any] = [Load(memory=Memory.UOP, y_size=1, x_size=depth, x_stride=depth)]
    if config.post and draw(st.booleans()):
        body.append(SetOut(low=-128, high=127))
        body.append(SetSum(low=-128, high=127, left_multiplier=1, right_multiplier=1))
    for one in draw(programs(config, size=14, finishing=True, **SIZES))[:-1]:
        plain: Any = replace(one, pop_prev=False, pop_next=False, push_prev=False, push_next=False)
        if isinstance(plain, Load) and plain.memory == Memory.UOP:
            size = min(plain.x_size, depth - plain.sram_base)
            body.append(replace(plain, x_size=size, y_size=1, y_pad_0=0, y_pad_1=0, x_pad_0=0, x_pad_1=0))
        elif isinstance(plain, Store) or (
            isinstance(plain, Load)
            and not isinstance(plain, LoadPar | LoadRes)  # they conflict with the store unit's own STOREs
            and draw(st.integers(0, 3)) == 0
        ):
            body.append(_moved(plain, config))
        else:
            body.append(plain)
    return [*insert_tokens(body, config, words, SharedDram(body, config)).program, Finish()]


def _moved(one: Any, config: Config) -> Any:
    """Move the DRAM address of a LOAD or STORE to the stored bytes."""
    sizes = {
        Memory.WGT: config.wgt_element_bytes,
        Memory.INP: config.inp_element_bytes,
        Memory.ACC: config.acc_element_bytes,
    }
    return replace(
        one, dram_base=one.dram_base + DATA_BYTES // sizes.get(one.memory, config.out_element_bytes)
    )

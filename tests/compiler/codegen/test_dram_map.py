"""Placement of buffers in scratchpads and of tensors in DRAM, and errors for those that
do not fit."""

from itertools import pairwise

import pytest

import accel
from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.codegen.dram_map import DramMap, block_count, place_buffers, transfer_memory
from accel.compiler.nest.nest import Buffer
from accel.compiler.target.machine import machine
from accel.core.config import NAMED
from accel.core.isa import Memory
from tests.compiler import gemms
from tests.compiler.running import as_it_is
from tests.expect import refused

TINY = machine("tiny")
ACC = ((0, 1), (1, 8))
"""Shape of an accumulator block of tiny: one row of 8."""


def buffer(name: str, *shape: int, dtype: str = "int32", scope: str | None = "acc_buffer") -> Buffer:
    return Buffer(name, shape, dtype, None if scope is None else TINY.scope(scope))  # type: ignore[arg-type]


def test_buffers_follow_one_another_in_each_scratchpad() -> None:
    """Sizes are rounded up to whole elements."""
    a, b, c = buffer("a", 3, 17), buffer("b", 2, 8), buffer("c", 1, 1)
    other = buffer("d", 4, 4, dtype="int8", scope="inp_buffer")
    elements = {a: ACC, b: ACC, c: ACC, other: ((0, 1), (1, 4))}
    assert [block_count(each, element) for each, element in elements.items()] == [9, 2, 1, 4]
    assert place_buffers([a, other, b, c], elements) == {a: 0, other: 0, b: 9, c: 11}  # type: ignore[arg-type]


def test_a_scratchpad_that_is_full() -> None:
    depth = TINY.config.acc_depth
    a, b = buffer("a", depth, 8), buffer("b", 1, 8)
    assert place_buffers([a], {a: ACC}) == {a: 0}
    with refused(
        ScheduleError,
        "acc_buffer would hold 129 elements with b[1, 8]; configuration 'tiny' has 128: "
        "use smaller tiles, or compute_at an inner loop",
    ):
        place_buffers([a, b], {a: ACC, b: ACC})


def test_a_stage_left_in_dram_takes_no_scratchpad() -> None:
    a, b = buffer("a", 1000, 1000, scope=None), buffer("b", 2, 8)
    assert place_buffers([a, b], {a: ACC, b: ACC}) == {b: 0}


def test_tensors_lie_on_pages_of_their_own_and_on_multiples_of_their_elements() -> None:
    config = NAMED["gemm8x8"].override({"mem_size": 6 * 4096, "batch": 32, "block_in": 256})
    dram = DramMap(config)
    A = buffer("A", 8, 300, dtype="int8", scope=None)
    element = ((0, 32), (1, 256))
    first = dram.place(A, element, Memory.INP)
    assert (dram.offset(first), first.element_bytes) == (8192, 8192)
    assert first.layout.packed == (1, 2, 32, 256)
    assert dram.place(A, element, Memory.INP) is first
    assert dram.tensors == {(A, element): first}
    with refused(
        ScheduleError, "the program's tensors need 24577 bytes of DRAM; the window has mem_size=24576"
    ):
        dram.add("B", 1)


@pytest.mark.parametrize(
    ("workload", "least"),
    [
        (accel.gemm(100_000, 100_000, 100, shift=8), 4096 + 10_020_000_000),
        (accel.conv2d(1, 3, 100_000, 100_000, 3, 3), 4096 + 3 * 10**10 + 81 + 3 * 99_998**2),
        (accel.max_pool2d(1, 1, 20_000, 20_000, 2), 4096 + 5 * 10**8),
        (accel.gemm(10**12, 1, 1), 4096 + 2 * 10**12 + 1),
    ],
    ids=["gemm", "conv2d", "pool", "enormous"],
)
def test_tensors_too_large_for_dram_are_refused_before_planning(workload: accel.Workload, least: int) -> None:
    with refused(
        ScheduleError,
        f"the program's tensors need at least {least} bytes of DRAM; the window has mem_size=268435456",
    ):
        as_it_is(workload, "vta")


@pytest.mark.parametrize(
    ("scope", "dtype", "store", "memory"),
    [
        ("inp_buffer", "int8", False, Memory.INP),
        ("wgt_buffer", "int8", False, Memory.WGT),
        ("acc_buffer", "int32", False, Memory.ACC),
        ("acc_buffer", "int8", False, Memory.ACC_8BIT),
        ("acc_buffer", "int8", True, Memory.OUT),
    ],
)
def test_memory_ids(scope: str, dtype: str, store: bool, memory: Memory) -> None:
    dram = buffer("A", 8, 8, dtype=dtype, scope=None)
    assert transfer_memory(dram, buffer("AL", 8, 8, scope=scope), store=store) is memory


@pytest.mark.parametrize("name", ["gemm8x8", "vta", "tiny"])
def test_nothing_in_a_program_overlaps(name: str) -> None:
    program = as_it_is(accel.gemm(20, 30, 40, bias=True, shift=3), name)
    spans = [(tensor.offset, tensor.offset + tensor.nbytes) for tensor in program.tensors]
    spans += [(offset, offset + len(data)) for offset, data in program.segments]
    spans.append((program.code_offset, program.code_offset + len(program.code)))
    spans.sort()
    assert spans[0][0] >= 4096
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_one_tensor_in_two_layouts_is_packed_twice() -> None:
    """The operands of A @ A have different layouts on this machine."""
    vta = machine("vta")
    A = te.placeholder((16, 16), name="A")
    A2 = te.compute((16, 16), lambda y, x: A[y, x], name="A2")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * A2[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    gemms.tile(s, gemms.Gemm(A, A2, C, k), vta)
    CL = s.cache_write(C, vta.acc_buffer)
    s.cache_read(A, vta.inp_buffer, [CL])
    s[A2].set_scope(vta.wgt_buffer)
    s[CL].tensorize("yi", vta.gemm)
    program = as_it_is(s, vta)
    assert [tensor.layout.packed for tensor in program.tensors if tensor.name == "A"] == [
        (1, 1, 16, 16),
        (16, 1, 1, 16),
    ]
    assert program.run().mismatches == 0

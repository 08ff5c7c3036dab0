"""The token check on arrays against the one that goes from instruction to instruction."""

import pytest
from hypothesis import given

import accel
from accel.base.interned_sequence import Distinct
from accel.base.records import replace
from accel.core.fault_causes import fetch_faults, instruction_faults
from accel.core.isa import Mac, encode
from accel.core.token_rules import TokenFlow
from accel.proof.token_check import TokenReport, check_tokens, one_by_one
from accel.proof.vectorized_proof import Proof, prove
from accel.run.program import Program
from tests.lockstep.cases import Case, cases
from tests.strategies import examples

GEMM = accel.build(accel.gemm(24, 20, 40, bias=True, relu=True, shift=2), "tiny")


def both(program: Program) -> tuple[Proof | None, TokenReport]:
    """The results of both checks."""
    config, dram, start = program.config, program.dram(), program.start
    begin = config.mem_base + program.code_offset
    span = (begin, begin + len(program.code))
    instructions = program.instructions
    proof = prove(Distinct(instructions), config, dram, span, start.tokens, start.contents)
    return proof, one_by_one(instructions, config, dram, span, start.tokens, start.contents)


@examples(150)
@given(cases())
def test_what_is_proven_at_once_is_proven_one_by_one(case: Case) -> None:
    program = case.program
    if any(instruction_faults(program.instructions, program.config)) or fetch_faults(
        Distinct(program.instructions), program.config
    ):
        return
    proof, report = both(program)
    runs = TokenFlow(Distinct(program.instructions), program.start.tokens).in_order
    assert (proof is not None) == (report.ok and runs and not report.unwritten)
    if proof is not None:
        assert (proof.left_over, proof.peak) == (report.left_over, report.peak)


@pytest.mark.parametrize("place", range(0, len(GEMM.instructions), 5))
@pytest.mark.parametrize("flag", ["pop_prev", "pop_next", "push_prev", "push_next"])
def test_a_token_more_or_less_is_never_overlooked(place: int, flag: str) -> None:
    """Compiled programs have no redundant tokens, so most changes give a finding."""
    body = list(GEMM.instructions)
    body[place] = replace(body[place], **{flag: not getattr(body[place], flag)})
    if any(instruction_faults(body, GEMM.config)):
        return
    proof, report = both(replace(GEMM, code=encode(body, GEMM.config)))
    assert (proof is None) or (report.ok and proof == Proof(report.left_over, report.peak))


def test_programs_that_a_compiler_emits_are_proven_at_once() -> None:
    proof, report = both(GEMM)
    assert proof == Proof(report.left_over, report.peak)
    assert (
        check_tokens(
            GEMM.instructions,
            GEMM.config,
            memory=GEMM.dram(),
            program_span=(GEMM.code_offset, GEMM.code_offset + len(GEMM.code)),
        )
        == report
    )


def test_taps_are_part_of_what_a_depthwise_mac_touches() -> None:
    quantized = accel.Quantized(scale=0.003, output_zero=5)
    layer = accel.conv2d(1, 8, 8, 8, 8, 3, padding=1, groups=8, bias=True, quantized=quantized)
    program = accel.build(layer, "tiny-int8")
    assert any(isinstance(one, Mac) and one.depthwise for one in program.instructions)
    proof, report = both(program)
    assert report.ok
    assert proof == Proof(report.left_over, report.peak)

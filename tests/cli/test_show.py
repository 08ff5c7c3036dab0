from collections.abc import Callable
from pathlib import Path

import pytest

from accel.base.records import replace
from accel.base.run_choices import PROGRAM_STAGES
from accel.run.stage_listing import STAGES, stage_text
from tests.cli.conftest import Shell
from tests.programs import gemm_program


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(stage: str, accel: Shell, saved: Callable[..., Path]) -> None:
    assert accel("show", saved(shift=2), "--stage", stage).text == stage_text(gemm_program(shift=2), stage)


def test_help_names_the_stages_in_order() -> None:
    assert tuple(STAGES) == PROGRAM_STAGES


def test_stages_tell_how_far_compilation_is(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved(shift=2)
    texts = {stage: accel("show", file, "--stage", stage).text for stage in STAGES}
    assert "C[y][x] = min(max(S[y][x] >> 2, -128), 127)" in texts["nest"]
    assert "acc_buffer S[3][8]" in texts["scheduled"]
    assert "fused_gemm" not in texts["scheduled"]
    assert "vdla.fused_gemm1x4x8_add(" in texts["tensorized"]
    assert "ld.push_dep_to(ex)\nex.pop_dep_from(ld)\n" in texts["streams"]
    assert texts["asm"].splitlines()[-1].split() == [
        str(len(gemm_program(shift=2).instructions) - 1),
        "FINISH",
    ]
    assert accel("show", file).text == texts["tensorized"]


def test_instructions_name_their_stage(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved(bias=True, shift=3)
    streams = accel("show", file, "--stage", "streams").text
    asm = accel("show", file, "--stage", "asm").text
    for stage, mnemonic, what in (
        ("AL", "LOAD.INP", "inp 0..1"),
        ("biasL", "LOAD.ACC", "acc 6..7"),
        ("S", "GEMM", "4 micro-ops: acc 0..1 += inp 0..1 * wgt 0..3"),
        ("CL", "ALU.SHR", "2 micro-ops: acc 0..1 = acc 0..1 >> 3"),
        ("C", "STORE.OUT", "acc 0..1"),
    ):
        assert f"# {stage}: {mnemonic} " in streams
        (line,) = (line for line in asm.splitlines() if line.endswith(f"# {stage}: {what}"))
        assert f" {mnemonic} " in line
    Path("script").write_text("list 1 1\n")
    assert (
        accel("debug", file, "-x", "script").out
        == "  1  S: GEMM reset=1 uop_end=1 iter_out=6 dst_factor_out=1\n"
    )


def test_an_unknown_stage(accel: Shell, saved: Callable[..., Path]) -> None:
    message = "the stage is 'tensorise'; did you mean 'tensorized'?"
    accel.refused("show", saved(), "--stage", "tensorise", message=message)
    known = "asm, folded, nest, passes, scheduled, streams, tensorized, threads"
    message = f"the stage is 'ir'; valid are {known}"
    accel.refused("show", saved(), "--stage", "ir", message=message)


def test_a_program_without_its_source_says_what_it_offers(accel: Shell) -> None:
    replace(gemm_program(), source=None).save(accel.folder / "bare.accel")
    message = (
        "the program holds no tensor expression; "
        "it can be run, checked, disassembled, and shown at the stages streams and asm"
    )
    accel.refused("show", "bare.accel", message=message)
    assert accel("show", "bare.accel", "--stage", "asm").text in accel("disasm", "bare.accel").text
    assert accel("show", "bare.accel", "--stage", "streams").text.startswith("ex.perform_action(ex0)")
    assert (
        "compared to numpy    no: the program holds no tensor expression\n" in accel("run", "bare.accel").text
    )
    accel("check", "bare.accel")

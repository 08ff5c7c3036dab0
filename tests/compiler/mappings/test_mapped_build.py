"""Programs of operators that differ in scales only."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.records import field_names, replace
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.image.image import Image
from accel.run.program import as_program
from tests.compiler.quantized import any_inputs, epilogues

MACHINES = ("tiny-int8", "gemm8x8-int8", "vta-npu")


def choice_of(quantized: accel.Quantized, on: str) -> MappingChoice:
    conv = accel.conv2d(1, 24, 7, 9, 40, kernel=3, padding=1, bias=True, quantized=quantized)
    return choose_mapping(conv, accel.machine(on).config)


def compiled(choice: MappingChoice, on: str, like: Image | None = None) -> Image:
    machine = accel.machine(on)
    return compile_mapped(choice.mapping, choice.schedule(machine), machine.config, like=like)


@given(epilogues(channels=40), st.sampled_from(MACHINES), st.integers(0, 1 << 16))
def test_a_program_of_other_scales_equals_its_own(quantized: accel.Quantized, on: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(1e-4, 1e-2, np.shape(quantized.scale)) if np.shape(quantized.scale) else 0.0031
    other = replace(quantized, scale=tuple(scale) if np.shape(scale) else scale)
    choice = choice_of(other, on)
    own, shared = compiled(choice, on), compiled(choice, on, like=compiled(choice_of(quantized, on), on))
    for one in field_names(Image):
        if one != "compile_seconds":
            assert repr(getattr(own, one)) == repr(getattr(shared, one)), one


def test_a_program_of_other_scales_runs() -> None:
    first, second = (choice_of(accel.Quantized(scale=scale), "vta-int8") for scale in (0.01, 0.003))
    program = as_program(compiled(second, "vta-int8", like=compiled(first, "vta-int8")))
    program.run(any_inputs(second.mapping.source, 3))  # it compares with numpy

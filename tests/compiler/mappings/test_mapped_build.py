"""Programs of operators that differ in scales, zero points and bounds only."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.records import field_names, replace
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.compiler.ops.quantized_layers import ResidualOperation
from accel.image.image import Image
from accel.run.program import as_program
from tests.compiler.quantized import any_inputs, epilogues

MACHINES = ("tiny-npu", "vta-npu")


def choice_of(quantized: accel.Quantized, on: str) -> MappingChoice:
    conv = accel.conv2d(1, 24, 7, 9, 40, kernel=3, padding=1, bias=True, quantized=quantized)
    return choose_mapping(conv, accel.machine(on).config)


def compiled(choice: MappingChoice, on: str, like: Image | None = None) -> Image:
    machine = accel.machine(on)
    return compile_mapped(choice.mapping, choice.schedule(machine), machine.config, like=like)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[accel.Quantized, accel.Quantized]:
    """Draw epilogues of equal form."""
    operations: list[ResidualOperation] = ["add", "multiply"]
    one = draw(epilogues(channels=40, table=draw(st.booleans()), operations=operations, per_channel=True))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))

    def scales(*shape: int) -> list[float]:
        return [float(scale) for scale in np.float32(10 ** rng.uniform(-4, -1, shape)).reshape(-1)]

    def zero(dtype: str) -> int:
        return int(rng.integers(*((1, 256) if dtype == "uint8" else (-128, 0))))

    low, high = (0, 255) if one.output_dtype == "uint8" else (-128, 127)
    least, most = sorted(rng.integers(low, high + 1, 2).tolist())
    other = replace(
        one,
        scale=scales(40) if np.shape(one.scale) else scales(1)[0],
        input_zero=zero(one.input_dtype) if one.input_zero else 0,
        output_zero=zero(one.output_dtype),
        clip=(least, most),
        residual=None,
    )
    if one.residual is None:
        return one, other
    result_scale, scale, sum_scale = scales(3)
    residual = replace(
        one.residual,
        result_scale=result_scale,
        scale=scale,
        zero=zero(one.residual.dtype),
        sum_scale=sum_scale,
        sum_zero=zero(one.residual.sum_dtype),
        approximate=True,
    )
    return one, replace(other, residual=residual)


@given(pairs(), st.sampled_from(MACHINES))
def test_a_program_of_equal_form_equals_its_own(
    pair: tuple[accel.Quantized, accel.Quantized], on: str
) -> None:
    first, second = pair
    assert first.form == second.form
    choice, before = (choice_of(quantized, on) for quantized in (second, first))
    own, shared = compiled(choice, on), compiled(choice, on, like=compiled(before, on))
    for one in field_names(Image):
        if one != "compile_seconds":
            assert repr(getattr(own, one)) == repr(getattr(shared, one)), one


def test_a_program_of_other_scales_runs() -> None:
    first, second = (
        choice_of(accel.Quantized(scale=scale, output_zero=zero, residual=residual_of(scale)), "vta-int8")
        for scale, zero in ((0.01, 4), (0.003, -7))
    )
    program = as_program(compiled(second, "vta-int8", like=compiled(first, "vta-int8")))
    program.run(any_inputs(second.mapping.source, 3))  # it compares with numpy


def residual_of(scale: float) -> accel.QuantizedResidual:
    return accel.QuantizedResidual(result_scale=scale, scale=0.5, sum_scale=0.7, approximate=True)


def test_instructions_are_copied() -> None:
    """Another number of SETs is compiled anew."""
    plain = accel.Quantized(scale=0.1)
    like = compiled(choice_of(plain, "vta-int8"), "vta-int8")
    for other, is_copied in (
        (replace(plain, scale=0.2, output_zero=3, clip=(0, 9)), True),
        (replace(plain, input_zero=3), False),
    ):
        choice = choice_of(other, "vta-int8")
        own, given = compiled(choice, "vta-int8"), compiled(choice, "vta-int8", like=like)
        assert own.code == given.code
        assert (given.references is like.references) == is_copied

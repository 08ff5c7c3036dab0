"""Results that the store unit requantizes, and that the same program reads again as residuals."""

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.target.machine import Machine
from accel.core.isa import LoadRes, SetOut, StoreAdd
from tests.compiler.verdicts import program_is_right, stages_are_right

SIZES = [(4, 4, 4), (9, 12, 12)]


def _layers(size: tuple[int, int, int]) -> tuple[te.Tensor, dict[str, np.ndarray]]:
    """Three products. The second and the third add the previous layer's result."""
    M, N, K = size
    data = te.placeholder((M, K), name="data")
    weights = [te.placeholder((K, N), name=f"W{n}") for n in range(3)]
    last: te.Tensor | None = None
    for n, weight in enumerate(weights):
        last = _layer(data, weight, last, n)
    assert last is not None
    rng = np.random.default_rng(0)
    return last, {t.name: rng.integers(-128, 128, t.shape, dtype=np.int8) for t in (data, *weights)}


def _layer(data: te.Tensor, weight: te.Tensor, last: te.Tensor | None, n: int) -> te.Tensor:
    k = te.reduce_axis((0, weight.shape[0]), name="k")
    shape = data.shape[0], weight.shape[1]
    S = te.compute(shape, lambda y, x: te.sum(data[y, k] * weight[k, x], axis=k), name=f"S{n}")
    name = "out" if n == 2 else f"C{n}"
    if last is None:
        return te.compute(shape, lambda y, x: te.clip(S[y, x] >> 5, -128, 127), name=name, dtype="int8")
    return te.compute(
        shape, lambda y, x: te.clip((S[y, x] >> 5) + last[y, x], -128, 127), name=name, dtype="int8"
    )


def _scheduled(out: te.Tensor, m: Machine) -> te.Schedule:
    s = te.create_schedule(out)
    for n in range(3):
        sums = s[s.tensor(f"S{n}")]
        sums.set_scope(m.acc_buffer)
        for tensor, scope in (("data", m.inp_buffer), (f"W{n}", m.wgt_buffer)):
            s[s.cache_read(s.tensor(tensor), scope, [sums])].compute_root()
        y, x = sums.axis
        (k,) = sums.reduce_axis
        sums.compute_root()
        sums.tile(y, x, k, m.config.batch, m.config.block_out, m.config.block_in)
        sums.tensorize(sums.leaves[3], m.gemm)
        stage = s[s.tensor("out" if n == 2 else f"C{n}")]
        s[s.cache_read(stage.pack_parameters(), m.par_buffer)].compute_root()
        stage.tensorize(stage.leaves[0], m.post)
    return s


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["tiny-int8", "vta-int8"])
def test_residuals_that_the_program_has_stored(name: str, size: tuple[int, int, int]) -> None:
    """Residuals must be read after they are written. A SET separates the first two layers. The others need no
    SET, so tokens through the compute unit order them."""
    m = accel.machine(name)
    out, inputs = _layers(size)
    schedule = _scheduled(out, m)
    want = np.zeros((1, 1), dtype=np.int64)
    for n in range(3):
        sums = inputs["data"].astype(np.int64) @ inputs[f"W{n}"]
        want = ((sums >> 5) + want).clip(-128, 127)
    stages_are_right(schedule, inputs, want.astype(np.int8))
    program = accel.build(schedule, m)
    kinds = [type(one) for one in program.instructions]
    assert kinds.count(SetOut) == 2
    last = len(kinds) - 1 - kinds[::-1].index(LoadRes)
    assert program.instructions[last].pop_prev
    assert any(one.push_prev for one in program.instructions if isinstance(one, StoreAdd))
    program_is_right(program, inputs, want.astype(np.int8))


def test_equal_parameters_are_loaded_once() -> None:
    """All channels of a mean have equal parameters."""
    mean = accel.global_avg_pool2d(1, 18, 3, 3, quantized=accel.Quantized(scale=0.1, input_zero=-3))
    program = accel.build(mean, "tiny-int8")
    result = program.run()
    assert result.mismatches == 0
    assert result.bytes_by_kind["par"] == program.config.par_element_bytes
    for block in (0, 19, True, "4"):
        with pytest.raises(ScheduleError, match="1 to 18 are possible"):
            te.create_schedule(mean.output)[mean.output].pack_parameters(block=block)  # type: ignore[arg-type]
    scaled = accel.gemm(4, 8, 4, bias=True, quantized=accel.Quantized(scale=0.1))
    with pytest.raises(ScheduleError, match="where all channels have the same"):
        te.create_schedule(scaled.output)[scaled.output].pack_parameters(block=4)

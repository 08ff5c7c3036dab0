"""The ALU changes accumulators in place only if nothing reads the old values."""

import pytest

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.te import Schedule
from tests.expect import refused

M = accel.machine("gemm8x8")


def shifted_in_every_iteration(*, sums_inside: bool) -> Schedule:
    """Return ``D[z] = T`` for three z, where each iteration computes ``T = S >> 3`` again."""
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    S = te.compute((8, 8), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="S")
    T = te.compute((8, 8), lambda y, x: S[y, x] >> 3, name="T")
    D = te.compute((3, 8, 8), lambda z, y, x: te.clip(T[y, x], -128, 127), name="D", dtype="int8")
    s = te.create_schedule(D)
    finished = s[s.cache_write(D, M.acc_buffer)]
    for tensor in (S, T):
        s[tensor].set_scope(M.acc_buffer)
    for stage in (finished, s[T], *([s[S]] if sums_inside else [])):
        stage.compute_at(s[D], "z")
    s.cache_read(A, M.inp_buffer)
    s.cache_read(B, M.wgt_buffer)
    s[S].tensorize("y", M.gemm)
    for stage in (s[T], finished):
        stage.tensorize("y", M.alu)
    return s


def test_sums_are_changed_in_place_as_often_as_they_are_computed() -> None:
    assert accel.build(shifted_in_every_iteration(sums_inside=True), M).run(seed=1).mismatches == 0


def test_sums_that_are_computed_once_are_not_changed_in_every_iteration() -> None:
    """The second iteration would read shifted sums."""
    with refused(
        TensorizeError,
        "T would change S[y][x] in place; it must start from sums that are computed in acc_buffer inside the "
        "same loop, element by element, and that no other stage reads",
    ):
        accel.build(shifted_in_every_iteration(sums_inside=False), M)


@pytest.mark.parametrize("inside", [True, False])
def test_a_copy_is_loaded_again_once_it_has_been_changed(inside: bool) -> None:
    """Every iteration loads the copy again. A copy outside the loop is not changed in place."""
    P = te.placeholder((8, 8), "int32", name="P")
    T = te.compute((8, 8), lambda y, x: P[y, x] >> 3, name="T")
    D = te.compute((3, 8, 8), lambda z, y, x: te.clip(T[y, x], -128, 127), name="D", dtype="int8")
    s = te.create_schedule(D)
    finished, loaded = s[s.cache_write(D, M.acc_buffer)], s[s.cache_read(P, M.acc_buffer)]
    s[T].set_scope(M.acc_buffer)
    for stage in (finished, s[T], *([loaded] if inside else [])):
        stage.compute_at(s[D], "z")
    for stage in (s[T], finished):
        stage.tensorize("y", M.alu)
    if not inside:
        with pytest.raises(TensorizeError, match="would change PL"):
            accel.build(s, M)
        return
    program = accel.build(s, M)
    assert [i.mnemonic for i in program.instructions].count("LOAD.ACC") == 3
    assert program.run(seed=1).mismatches == 0

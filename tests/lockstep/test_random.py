import pytest
from hypothesis import given

from accel.run.lockstep import lockstep
from tests.lockstep.builds import BUILDS, built, each, missing_values
from tests.lockstep.cases import Case, cases
from tests.strategies import examples


def assert_equal(case: Case, *, hostile: bool = False) -> None:
    engine = built(case.program.config)
    found = lockstep(case.program, engine, seed=case.seed, max_cycles=case.max_cycles, hostile=hostile)
    assert found.difference is None, found.difference


@pytest.mark.parametrize("build", each())
def test_every_cycle_is_the_same(build: str) -> None:
    @examples(100)
    @given(cases({build: BUILDS[build]}))
    def check(case: Case) -> None:
        assert_equal(case)

    check()


def test_the_builds_have_every_value_between_them() -> None:
    assert len(BUILDS) <= 16
    assert {name: missing for name, missing in missing_values().items() if missing} == {}

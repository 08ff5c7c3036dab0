"""Lockstep tests need a compiled engine."""

import pytest

from accel.base.errors import EngineError
from accel.hw.engines import model_cache


@pytest.fixture(scope="session", autouse=True)
def compiled_engines() -> None:
    try:
        model_cache.compiler()
    except EngineError as error:
        pytest.skip(str(error))

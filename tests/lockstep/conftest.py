"""Lockstep needs a compiled engine."""

import pytest

from accel.base.errors import EngineError
from accel.hw.engines import build


@pytest.fixture(scope="session", autouse=True)
def compiled_engines() -> None:
    """Skip where nothing can be compiled."""
    try:
        build.compiler()
    except EngineError as error:
        pytest.skip(str(error))

from pathlib import Path

import pytest

from accel.base.errors import EngineError
from accel.hw.engines import open_engine
from tests.programs import TINY


def test_the_environment_has_the_level_of_optimization_unless_one_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(open_engine.ENGINES, "pysim", lambda config, level, wave: level)
    monkeypatch.setattr(open_engine, "write_save_file", lambda *_: None)

    def level(**options: object) -> object:
        return open_engine.open_engine(TINY, "pysim", **options)  # type: ignore[arg-type]

    monkeypatch.delenv(open_engine.OPTIMIZE)
    assert (level(), level(wave=tmp_path / "some.vcd"), level(optimize=1)) == (3, 2, 1)
    monkeypatch.setenv(open_engine.OPTIMIZE, "0")
    assert (level(), level(wave=tmp_path / "some.vcd"), level(optimize=1)) == (0, 0, 1)
    monkeypatch.setenv(open_engine.OPTIMIZE, "4")
    with pytest.raises(EngineError, match=r"^ACCEL_OPTIMIZE is '4'; it may be 0 to 3$"):
        level()
    assert level(optimize=2) == 2

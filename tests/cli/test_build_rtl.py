"""``accel build-rtl``."""

import sys
from pathlib import Path

import pytest

from accel.base import notices
from accel.core.config import NAMED
from accel.hw.engines import model_cache
from tests.cli.conftest import Shell


def test_pysim_needs_no_model(accel: Shell) -> None:
    found = accel("build-rtl", "--config", "tiny", "--engine", "pysim", "--json").json
    assert (found["config"], found["engine"]) == ("tiny", "pysim")
    assert found["seconds"] > 0
    text = accel("build-rtl", "--config", "tiny", "--engine", "pysim").text
    assert text.splitlines()[0].split()[:2] == ["machine", "tiny"]


def test_unknown_engines_are_refused(accel: Shell) -> None:
    message = accel("build-rtl", "--engine", "pysym", code=2).err
    assert message.startswith("accel: ")
    assert "pysim" in message


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_build_is_announced_on_a_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The cache is empty, so the model would be built; the compiler is stopped before it starts."""

    def stopped(*_: object) -> list[Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr(notices, "_show", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    notices.show_notices_on_terminal()
    with pytest.raises(KeyboardInterrupt):
        model_cache.model("verilator", NAMED["tiny"], [], ("amaranth",), stopped)
    said = capsys.readouterr().err
    assert said == (
        "accel: building the hardware model of tiny for verilator, once; this takes about half a minute\n"
        if is_terminal
        else ""
    )

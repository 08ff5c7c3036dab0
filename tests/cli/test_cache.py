"""``accel cache`` and ``accel --no-cache``."""

import os
from pathlib import Path

import pytest

from accel.base.result_cache import VARIABLE, ResultCache
from accel.network.digits import MODEL
from tests.cli.conftest import Shell


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultCache:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return ResultCache(tmp_path / "cache")


def test_networks_are_kept_shown_and_cleared(accel: Shell, cache: ResultCache, tmp_path: Path) -> None:
    written = tmp_path / "net.accel"
    accel("compile", "onnx", MODEL, "-o", written)
    first = written.read_bytes()
    found = accel("cache", "--json").json
    assert found["folder"] == str(cache.folder)
    assert found["kinds"]["network"]["entries"] == 1
    assert found["kinds"]["network"]["bytes"] == sum(e.nbytes for e in cache.entries() if e.kind == "network")
    assert found["deleted"] == 0
    accel("compile", "onnx", MODEL, "-o", written)
    assert written.read_bytes() == first
    assert str(cache.folder) in accel("cache").text
    count = len(cache.entries())
    assert accel("cache", "--clear", "--json").json["deleted"] == count
    assert cache.entries() == []


def test_no_cache_is_read_or_written(accel: Shell, cache: ResultCache, tmp_path: Path) -> None:
    before = os.environ[VARIABLE]
    accel("--no-cache", "compile", "onnx", MODEL, "-o", tmp_path / "net.accel")
    assert cache.entries() == []
    assert os.environ[VARIABLE] == before, "the caller's environment is as it was"
    assert "the cache is off" in accel("--no-cache", "cache").text
    assert accel("--no-cache", "cache", "--json").json["folder"] is None


def test_a_run_reads_what_compiling_wrote(accel: Shell, cache: ResultCache, tmp_path: Path) -> None:
    accel("compile", "onnx", MODEL, "-o", tmp_path / "net.accel")
    entries = {entry.path.name for entry in cache.entries()}
    accel("run", MODEL)
    assert {entry.path.name for entry in cache.entries()} == entries

"""The cache on disk: complete or absent entries, a bounded size, keys that cover the sources."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from accel.base import result_cache as module
from accel.base.result_cache import OFF, VARIABLE, ResultCache, cache_folder, cache_key, result_cache


def test_reads_what_was_written(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "new" / "folder")
    assert cache.read("plans", "a") is None
    cache.write("plans", "a", b"content")
    assert cache.read("plans", "a") == b"content"
    assert cache.read("network", "a") is None
    assert [(one.kind, one.path.name) for one in cache.entries()] == [("plans", "plans-a")]
    assert cache.folder.stat().st_mode & 0o077 == 0, "the folder is the user's alone"


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_entry_counts_as_absent(tmp_path: Path, damage: bytes | None) -> None:
    cache = ResultCache(tmp_path)
    cache.write("plans", "a", b"content")
    path = tmp_path / "plans-a"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"X" if damage is None else damage)
    assert cache.read("plans", "a") is None
    assert not path.exists()


def test_the_size_is_bounded_and_the_least_recently_used_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WRITES_PER_PRUNING", 1)
    cache = ResultCache(tmp_path, max_bytes=10_000)
    for number in range(9):
        cache.write("plans", str(number), bytes(1000))
        os.utime(tmp_path / f"plans-{number}", (number, number))
    assert cache.read("plans", "0") is not None, "reading is a use"
    cache.write("plans", "9", bytes(1000))
    left = {one.path.name for one in cache.entries()}
    assert sum(one.nbytes for one in cache.entries()) <= 7500
    assert {"plans-0", "plans-9", "plans-8"} <= left
    assert "plans-1" not in left
    cache.write("plans", "huge", bytes(9000))
    assert cache.read("plans", "huge") is None, "it would displace all others"


def test_files_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    fresh, abandoned = tmp_path / ".tmp-1", tmp_path / ".tmp-2"
    fresh.write_bytes(b"")
    abandoned.write_bytes(b"")
    os.utime(abandoned, (1, 1))
    cache.write("plans", "a", b"")
    assert fresh.exists()
    assert not abandoned.exists()
    assert cache.clear() == 1
    assert list(tmp_path.iterdir()) == []


def test_several_writers_leave_one_complete_entry(tmp_path: Path) -> None:
    contents = [bytes([number]) * 50_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        caches = [ResultCache(tmp_path) for _ in contents]
        list(pool.map(lambda pair: pair[0].write("plans", "a", pair[1]), zip(caches, contents, strict=True)))
    assert ResultCache(tmp_path).read("plans", "a") in contents
    assert [path.name for path in tmp_path.iterdir()] == ["plans-a"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    cache = ResultCache(file / "folder")
    cache.write("plans", "a", b"content")
    assert cache.read("plans", "a") is None
    assert cache.entries() == []
    assert cache.clear() == 0


def test_the_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE)
    assert cache_folder() == tmp_path / "accel" / "results"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other"))
    cache = result_cache()
    assert cache is not None
    assert cache.folder == tmp_path / "other"
    monkeypatch.setenv(VARIABLE, OFF)
    assert result_cache() is None


def test_keys_tell_parts_and_sources_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_key("a", "b") == cache_key("a", b"b")
    assert len({cache_key("a", "b"), cache_key("ab"), cache_key("ab", ""), cache_key("b", "a")}) == 4
    before = cache_key("a")
    monkeypatch.setattr(module, "_source_digest", lambda: b"another release")
    assert cache_key("a") != before


def test_the_source_digest_follows_the_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    source = tmp_path / "inner" / "one.py"
    source.write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("")

    def files() -> list[tuple[str, int, int]]:
        return list(module._source_files(tmp_path))

    before = files()
    assert [name for name, _, _ in before] == [str(source)]
    os.utime(source, (1, 1))
    assert files() != before

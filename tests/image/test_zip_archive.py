"""Limits of unpacked sizes, and allowed compression methods."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.image import zip_archive
from accel.image.zip_archive import Archive, write_archive
from accel.run.program import Program
from tests.expect import refused
from tests.programs import TINY, archived, gemm_program, handmade, rewritten

MIB = 1 << 20


def peak(use: str, path: Path) -> int:
    """Bytes that refusing a file takes at most."""
    tracemalloc.start()
    try:
        with pytest.raises(ProgramError, match=use):
            Program.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def many_zeros(path: Path, count: int, each: int) -> int:
    """A program file whose segments are zeros, and its size."""
    handmade().save(path)
    with zipfile.ZipFile(path) as source:
        code = source.read("instructions.bin")
    entries = [{"offset": (1 << 16) + n * each, "bytes": each} for n in range(count)]

    def changed(manifest: dict[str, object]) -> None:
        manifest["segments"] = entries

    rewritten(path, path, changed)
    with zipfile.ZipFile(path) as source:
        manifest = source.read("program.json")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        target.writestr("program.json", manifest)
        target.writestr("instructions.bin", code)
        for number in range(count):
            target.writestr(f"segments/{number}.bin", bytes(each))
    return path.stat().st_size


def test_many_members_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "LARGEST_CONTENT", 8 * MIB)
    size = many_zeros(tmp_path / "p", 16, MIB)
    assert size < MIB
    message = f"it unpacks to more than {8 * MIB} bytes; the file has {size}$"
    assert peak(message, tmp_path / "p") < 10 * MIB


def test_zeros_within_the_limit_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "LARGEST_CONTENT", 16 * MIB + 16)
    many_zeros(tmp_path / "p", 16, MIB)
    assert len(Program.load(tmp_path / "p").segments) == 16


def test_what_we_write_we_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit nothing is deflated, so that the file holds as much as it unpacks to."""
    monkeypatch.setattr(zip_archive, "LARGEST_CONTENT", MIB)
    monkeypatch.setattr(zip_archive, "LARGEST_MANIFEST", 100)
    large = handmade(config=TINY, segments=((1 << 16, bytes(2 * MIB)),))
    large.save(tmp_path / "p")
    assert (tmp_path / "p").stat().st_size > 2 * MIB
    assert Program.load(tmp_path / "p") == large


def test_a_manifest_has_a_limit(tmp_path: Path) -> None:
    """Plain data takes many times the bytes of its text."""
    raw = b"[" + b"{}," * (9 * MIB // 3) + b"{}]"
    with zipfile.ZipFile(tmp_path / "p", "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("program.json", raw)
    assert (
        peak(f"its program.json has {len(raw)} bytes; at most {8 * MIB} are expected", tmp_path / "p") < MIB
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_make_gigabytes_a_few_bytes_are_not_unpacked(method: int) -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", method) as target:
        target.writestr("program.json", bytes(4 * MIB))
    assert len(raw.getvalue()) < 2000
    with refused(ProgramError, f"its program.json is compressed by method {method}; deflate is read"):
        Archive(raw).manifest()


@pytest.mark.parametrize("half", [r"\ud800", r"\uDFFF"])
def test_half_a_character_is_refused(half: str, tmp_path: Path) -> None:
    gemm_program().save(tmp_path / "p")
    with zipfile.ZipFile(tmp_path / "p") as source:
        members = {name: source.read(name) for name in source.namelist()}
    members["program.json"] = members["program.json"].replace(b'"tiny"', f'"{half}"'.encode())
    archived(tmp_path / "p", members.items())
    text = f"its manifest holds '{half.lower()}', half a character; text must be whole"
    with refused(ProgramError, f"program {str(tmp_path / 'p')!r}: {text}"):
        Program.load(tmp_path / "p")


def test_a_whole_pair_is_a_character(tmp_path: Path) -> None:
    gemm_program().save(tmp_path / "p")
    rewritten(tmp_path / "p", tmp_path / "p", lambda manifest: manifest["config"].update(name="\U0001f600"))
    with zipfile.ZipFile(tmp_path / "p") as source:
        assert rb"\ud83d\ude00" in source.read("program.json")
    assert Program.load(tmp_path / "p").config.name == "\U0001f600"


def test_the_same_content_gives_the_same_bytes() -> None:
    written = [io.BytesIO() for _ in range(2)]
    for file in written:
        write_archive(file, b"{}", [("a", b"1"), ("b", bytes(100))])
    assert written[0].getvalue() == written[1].getvalue()


def test_members_that_hardly_shrink_are_stored() -> None:
    members = {
        "zeros": bytes(1 << 17),
        "random": np.random.default_rng(0).bytes(1 << 17),
        "small": np.random.default_rng(1).bytes(1 << 8),
    }
    file = io.BytesIO()
    write_archive(file, b"{}", members.items())
    archive = Archive(file)
    assert {name: archive.content(name) for name in members} == members
    with zipfile.ZipFile(file) as written:
        methods = {name: written.getinfo(name).compress_type for name in members}
    deflated, stored = zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED
    assert methods == {"zeros": deflated, "random": stored, "small": deflated}

"""Conformance vectors: reading, comparing, and refused folders."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import AccelError, ConfigError, ProgramError
from accel.base.records import replace
from accel.core.isa import Finish, Gemm, Load, Memory, decode, encode
from accel.image.address_allocation import free_address
from accel.image.conformance_vectors import load_vector
from accel.image.image import Region
from accel.run.replay import Replay, find_programs, load_test, replay
from tests.expect import refused
from tests.strategies import examples
from tests.vectors import CONFIG, KEYS, RESULT, RESULTS, SUMS, UOPS, VALUES, page, program, write_vector


def u64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.uint64)


# --- running ---------------------------------------------------------------------------------------


def run(folder: Path, **options: Any) -> Replay:
    return replay(load_test(folder), **options)


@pytest.mark.parametrize("backend", ["functional", "sim"])
@pytest.mark.parametrize("order", ["program", "random"])
def test_a_right_vector_passes(backend: str, order: Any, tmp_path: Path) -> None:
    done = run(write_vector(tmp_path / "v"), backend=backend, order=order, seed=5)
    assert done.passed
    found = [getattr(done.figures, key) for key in ("instructions", "uops", "mismatches", "error")]
    assert found == [5, 1, 0, None]
    assert (done.figures.cycles is not None) is (backend == "sim")


def test_the_first_difference_is_told(tmp_path: Path) -> None:
    wrong = np.concatenate([RESULTS.view(np.uint8), VALUES.view(np.uint8)])
    wrong[[3, 5, 39]] ^= 0xFF
    done = run(write_vector(tmp_path / "v", expect={"data": wrong}))
    assert (done.passed, done.error) == (False, None)
    assert done.figures.mismatches == 3
    held, expected = RESULTS.view(np.uint8)[3], wrong[3]
    assert done.differences == (
        f"3 bytes differ; the first, {RESULT + 3:#x} holds {held:#04x} instead of {expected:#04x}",
    )


def test_memory_that_is_not_given_is_zero(tmp_path: Path) -> None:
    """Before the run, and where nothing is stored after it."""
    expect = {"addr": u64(0, RESULT + 8), "length": u64(16, 8), "data": np.zeros(24, np.uint8)}
    assert run(write_vector(tmp_path / "v", expect=expect)).passed


def test_a_vector_without_pages_or_regions_is_one(tmp_path: Path) -> None:
    empty = {"addr": u64(), "data": np.zeros((0, 4096), np.uint8)}
    nothing = {"addr": u64(), "length": u64(), "data": np.zeros(0, np.uint8)}
    folder = write_vector(tmp_path / "v", dram_before=empty, expect=nothing, insn=encode([Finish()], CONFIG))
    assert run(folder).passed


def test_what_stops_the_machine_fails_the_vector(tmp_path: Path) -> None:
    done = run(write_vector(tmp_path / "v", insn=encode(program()[:-1], CONFIG)), backend="sim")
    assert (done.passed, done.figures.mismatches) == (False, None)
    assert done.differences == (done.error,)
    assert done.error is not None
    assert done.error.endswith("the last instruction is STORE.OUT; it must be FINISH")
    assert done.figures.error is not None
    assert done.figures.error.cause == "no-finish"


@pytest.mark.parametrize("limit", [{"max_uops": 1}, {"max_cycles": 20, "backend": "sim"}])
def test_limits_fail_the_vector(limit: dict[str, Any], tmp_path: Path) -> None:
    load_uop, load_acc, alu, *rest = program()
    twice = [load_uop, load_acc, replace(alu, iter_out=2), *rest]
    done = run(write_vector(tmp_path / "v", insn=encode(twice, CONFIG)), **limit)
    assert not done.passed
    assert done.error is not None
    assert "max_" in done.error


def test_instructions_lie_where_nothing_else_does(tmp_path: Path) -> None:
    """They are fetched from DRAM in timed runs: not where there are pages or expected bytes, nor where the
    program only reads zeros or writes what is not compared."""
    low = {"addr": u64(0, SUMS)}
    assert load_vector(write_vector(tmp_path / "v")).code_offset == 0
    assert load_vector(write_vector(tmp_path / "w", expect=low)).code_offset == RESULT + 4096
    zeros = Load(memory=Memory.INP, dram_base=(RESULT + 4096) // 4, y_size=1, x_size=1, x_stride=1)
    code = encode([zeros, *program()], CONFIG)
    assert load_vector(write_vector(tmp_path / "x", expect=low, insn=code)).code_offset == RESULT + 8192


def test_instructions_fit_into_a_page_exactly(tmp_path: Path) -> None:
    """Before the first page that is used, and before the window's end."""
    page_full = encode([*program()[:-1], *[Gemm()] * 251, Finish()], CONFIG)
    assert len(page_full) == 4096 == UOPS
    assert load_vector(write_vector(tmp_path / "v", insn=page_full)).code_offset == 0
    assert load_vector(write_vector(tmp_path / "x", insn=page_full + page_full[-16:])).code_offset != 0
    config, instructions = replace(CONFIG, mem_size=RESULT + 8192), decode(page_full, CONFIG)
    used = [(0, RESULT + 4096)]
    assert free_address(config, instructions, used, len(page_full), "p") == RESULT + 4096
    with refused(ProgramError, "p leaves no room for its instructions in the DRAM window"):
        free_address(config, instructions, used, len(page_full) + 1, "p")
    moved = replace(config, mem_base=1 << 20)
    assert free_address(moved, instructions, used, len(page_full), "p") == (1 << 20) + RESULT + 4096


def test_faulty_transfers_take_no_room(tmp_path: Path) -> None:
    """They never move anything."""
    wild = Load(memory=Memory.INP, dram_base=1 << 30, y_size=9999, x_size=1, x_stride=9999)
    assert load_vector(write_vector(tmp_path / "v", insn=encode([wild, *program()], CONFIG))).code_offset == 0


def test_tensors_get_their_names_from_the_meta_file(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v")
    good = {"name": "sums", "shape": [1, 8], "dtype": "int32", "phys": SUMS}
    bad: list[Any] = [
        None,
        {"name": "x"},
        good | {"name": "a b"},
        good | {"name": 3},
        good | {"name": "far", "phys": 1 << 40},
        good | {"name": "low", "phys": -4},
        good | {"name": "no", "phys": "0"},
        good | {"name": "shape", "shape": ["a"]},
        good | {"name": "empty", "shape": [0]},
        good | {"name": "dtype", "dtype": "int9"},
        good | {"phys": 0},
    ]
    (folder / "meta.json").write_text(json.dumps({"tensors": [good, *bad]}))
    assert load_vector(folder).regions == (Region(name="sums", offset=SUMS, nbytes=32),)
    for text in ("[]", "{", '{"tensors": 3}', "[" * 100_000, '{"tensors": null}'):
        (folder / "meta.json").write_text(text)
        assert load_vector(folder).regions == ()


# --- finding ---------------------------------------------------------------------------------------


def test_programs_are_found_in_nested_folders_once(tmp_path: Path) -> None:
    for name in ("set/b", "set/deep/a", "c"):
        write_vector(tmp_path / name)
    (tmp_path / "set" / "notes").mkdir()
    (tmp_path / "set" / "notes" / "t.s").touch()
    (tmp_path / "set" / "p.accel").touch()
    wanted = ["set/b", "set/deep/a", "set/notes/t.s", "set/p.accel"]
    assert find_programs([tmp_path / "set"]) == [tmp_path / name for name in wanted]
    assert find_programs([tmp_path / "c", tmp_path, tmp_path / "c"])[0] == tmp_path / "c"
    assert len(find_programs([tmp_path / "c", tmp_path, tmp_path / "c"])) == 5


def test_a_folder_must_hold_programs(tmp_path: Path) -> None:
    with refused(
        ProgramError,
        f"'{tmp_path}' contains no program; programs are .accel files, .s files, and folders with insn.bin",
    ):
        find_programs([tmp_path])
    with refused(
        ProgramError, f"'{tmp_path / 'x'}' does not exist; give programs, or folders that contain some"
    ):
        find_programs([tmp_path / "x"])


# --- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["insn.bin", "dram_before.npz", "expect.npz"])
def test_a_missing_file_is_named(file: str, tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", **{Path(file).stem: None})
    with refused(ProgramError, f"vector {str(folder)!r}: {file} cannot be read: No such file or directory"):
        load_vector(folder)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", config=None)
    where = str(folder / "config.json")
    with refused(ConfigError, f"configuration {where!r} cannot be read: No such file or directory"):
        load_vector(folder)


class Malicious:
    """Ends the process when unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os._exit, (3,)


def npy() -> bytes:
    raw = io.BytesIO()
    np.save(raw, np.zeros(3))
    return raw.getvalue()


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "half an instruction": (
        {"insn": b"\0" * 24},
        "the instructions are 24 bytes; they must be a multiple of 16",
    ),
    "no archive": ({"expect": b"text"}, "expect.npz: it is no .npz file; numpy.savez writes what is needed"),
    "an array": ({"expect": npy()}, "expect.npz: it is no .npz file; numpy.savez writes what is needed"),
    "pickle": (
        {"dram_before": pickle.dumps(Malicious())},
        "dram_before.npz: it is no .npz file; numpy.savez writes what is needed",
    ),
    "array missing": (
        {"expect": {"length": None}},
        "expect.npz has no array 'length'; it must hold addr, length, data",
    ),
    "dtype": (
        {"dram_before": {"addr": np.array([UOPS, SUMS], dtype=np.int64)}},
        "addr in dram_before.npz is int64 with 1 dimensions; it must be uint64 with 1",
    ),
    "dimensions": (
        {"expect": {"data": np.zeros((40, 1), np.uint8)}},
        "data in expect.npz is uint8 with 2 dimensions; it must be uint8 with 1",
    ),
    "short pages": (
        {"dram_before": {"data": np.zeros((2, 4095), np.uint8)}},
        "dram_before.npz has data of shape (2, 4095); it must be (2, 4096), one row for each addr",
    ),
    "page without address": (
        {"dram_before": {"addr": u64(UOPS)}},
        "dram_before.npz has data of shape (2, 4096); it must be (1, 4096), one row for each addr",
    ),
    "lengths too long": (
        {"expect": {"length": u64(8, 33)}},
        "expect.npz has 2 addr, 2 length and 40 data; "
        "it must have one length for each addr, which add up to data's bytes",
    ),
    "lengths that wrap": (
        {"expect": {"length": u64((1 << 64) - 8, 48)}},
        "expect.npz has 2 addr, 2 length and 40 data; "
        "it must have one length for each addr, which add up to data's bytes",
    ),
    "region without address": (
        {"expect": {"addr": u64(RESULT)}},
        "expect.npz has 1 addr, 2 length and 40 data; "
        "it must have one length for each addr, which add up to data's bytes",
    ),
    "page outside": (
        {"dram_before": {"addr": u64(UOPS, 1 << 28)}},
        "it has 4096 bytes at 0x10000000; the DRAM window is 0x0..0xfffffff",
    ),
    "page that is none": (
        {"dram_before": {"addr": u64(UOPS, SUMS + 1)}},
        "dram_before.npz has a page at 0x2001; addr must hold multiples of 4096",
    ),
    "region outside": (
        {"expect": {"addr": u64(RESULT, (1 << 64) - 32)}},
        "it has 32 bytes at 0xffffffffffffffe0; the DRAM window is 0x0..0xfffffff",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_not_of_the_format_is_refused(case: str, tmp_path: Path) -> None:
    changes, message = DAMAGED[case]
    folder = write_vector(tmp_path / "v", **changes)
    with refused(ProgramError, f"vector {str(folder)!r}: {message}"):
        load_vector(folder)


def test_a_header_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", expect=None)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 50,)}
    )
    with zipfile.ZipFile(folder / "expect.npz", "w") as archive:
        for name in ("addr", "length", "data"):
            archive.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(ProgramError, match=r"expect\.npz is damaged: "):
        load_vector(folder)


def test_a_header_that_hides_bytes_is_refused(tmp_path: Path) -> None:
    """Whoever reads no more than the array does not come to the archive's checksum."""
    path = write_vector(tmp_path / "v") / "dram_before.npz"
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"\x93NUMPY") + 8] ^= 2  # the header's length
    path.write_bytes(raw)
    with pytest.raises(ProgramError, match=r"Bad CRC-32 for file .data\.npy."):
        load_test(path.parent)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (zipfile.ZIP_BZIP2, "its data.npy is compressed by method 12; deflate is read"),
        (zipfile.ZIP_DEFLATED, "it unpacks to more than 4194304 bytes; the file has {}"),
    ],
)
def test_gigabytes_in_a_few_bytes_are_not_unpacked(
    method: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel.image.zip_archive.LARGEST_CONTENT", 4 << 20)
    folder = write_vector(tmp_path / "v")
    path = folder / "dram_before.npz"
    with zipfile.ZipFile(path) as archive:
        addresses = archive.read("addr.npy")
    pages = io.BytesIO()
    np.lib.format.write_array(pages, np.zeros((2000, 4096), np.uint8))
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo("addr.npy"), addresses)
        archive.writestr("data.npy", pages.getvalue())
    text = message.format(path.stat().st_size)
    tracemalloc.start()
    with refused(ProgramError, f"vector {str(folder)!r}: dram_before.npz: {text}"):
        load_vector(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


def test_members_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", expect=None)
    with zipfile.ZipFile(folder / "expect.npz", "w") as archive:
        for name in ("addr", "length", "data"):
            archive.writestr(f"{name}.npy", b"text")
    with pytest.raises(
        ProgramError, match=r"expect\.npz is damaged: addr\.npy in it is not an array of numbers"
    ):
        load_vector(folder)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", expect={"data": np.array([Malicious()], dtype=object)})
    with pytest.raises(ProgramError, match=r"data\.npy in it .* Object arrays cannot be loaded"):
        load_vector(folder)


def test_configurations_are_checked(tmp_path: Path) -> None:
    folder = write_vector(tmp_path / "v", config=json.dumps(KEYS | {"LOG_INP_WIDTH": 4}).encode())
    with pytest.raises(ConfigError, match="LOG_INP_WIDTH is 4"):
        load_vector(folder)


@given(data=st.data())
@examples(200)
def test_damage_gives_the_same_vector_or_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Flipped bits, and files cut short; archives carry checksums, so little goes unnoticed."""
    folder = write_vector(tmp_path_factory.mktemp("damaged") / "v")
    file = folder / data.draw(st.sampled_from(["dram_before.npz", "expect.npz", "config.json"]))
    raw = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    file.unlink()
    file.write_bytes(raw)
    try:
        vector = load_test(folder)
    except AccelError:
        return
    if file.suffix == ".npz":
        assert replay(vector).passed


def test_page_contents_reach_dram(tmp_path: Path) -> None:
    memory = load_vector(write_vector(tmp_path / "v")).dram()
    np.testing.assert_array_equal(memory.read(SUMS, 4096), page(VALUES.tobytes()))

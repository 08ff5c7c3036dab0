"""Program files: a written file reads back equal, and other files are refused."""

import errno
import io
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import AccelError, ProgramError
from accel.core.config import NAMED
from accel.image.image import ImageTensor
from accel.image.packed_layout import PackedLayout
from accel.image.test_scenario import Start
from accel.run.program import Program
from accel.run.stage_listing import STAGES, stage_text
from tests.expect import refused
from tests.programs import TINY, archived, gemm_program, handmade, rewritten
from tests.strategies import examples

CONSTANTS = {"B": np.arange(45, dtype=np.int8).reshape(5, 9)}


def with_constants() -> Program:
    return accel.build(accel.gemm(3, 9, 5, bias=True, shift=3), "tiny", constants=CONSTANTS)


@pytest.fixture(scope="module")
def program() -> Program:
    """One of each: inputs of both dtypes, a constant, an output, expression and schedule."""
    return with_constants()


@pytest.fixture(scope="module")
def file(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "p.accel"
    program.save(path)
    return path


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is written over and over."""
    return tmp_path_factory.mktemp("scratch") / "damaged.accel"


# --- what is written is read back ------------------------------------------------------------------


@pytest.mark.parametrize("config", ["tiny", "vta", "gemm8x8", "ecp5"])
@pytest.mark.parametrize("options", [{}, {"transpose_a": True, "bias": True, "relu": True, "shift": 2}])
def test_a_file_holds_the_whole_program(config: str, options: dict[str, Any], tmp_path: Path) -> None:
    program = gemm_program(config=config, **options)
    program.save(tmp_path / "p.accel")
    loaded = Program.load(tmp_path / "p.accel")
    assert loaded == program
    assert loaded.instructions == program.instructions
    ran, expected = loaded.run(seed=3), program.run(seed=3)
    assert ran.mismatches == 0
    assert ran.events == expected.events
    np.testing.assert_array_equal(ran.outputs["C"], expected.outputs["C"])


def test_a_file_without_source_and_segments_is_read_back(tmp_path: Path) -> None:
    program = handmade()
    program.save(tmp_path / "p.accel")
    assert Program.load(tmp_path / "p.accel") == program


def test_a_program_has_one_file(file: Path, program: Program, tmp_path: Path) -> None:
    """Bytes depend neither on when nor how often a program is saved, nor on how it came about."""
    program.save(tmp_path / "again")
    Program.load(file).save(tmp_path / "loaded")
    pickle.loads(pickle.dumps(program)).save(tmp_path / "pickled")
    with_constants().save(tmp_path / "rebuilt")
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {file.read_bytes()}


def test_a_file_of_an_older_release_has_its_compile_time(
    manifest: dict[str, Any], file: Path, program: Program, scratch: Path
) -> None:
    assert "compile_seconds" not in manifest
    rewritten(file, scratch, top(compile_seconds=1.5))
    loaded = Program.load(scratch)
    assert loaded.compile_seconds == 1.5
    assert loaded == program


def test_files_do_not_depend_on_hash_seeds(tmp_path: Path) -> None:
    script = (
        "import accel, sys\n"
        "program = accel.build(accel.gemm(20, 30, 40, bias=True, shift=3), 'tiny')\n"
        "program.save(sys.argv[1])\n"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", script, tmp_path / seed], env=environment, check=True)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_programs_and_results_travel_between_processes(program: Program) -> None:
    result = program.run()  # fills what is cached
    _ = program.outputs, result.events
    assert pickle.loads(pickle.dumps(program)) == program
    travelled = pickle.loads(pickle.dumps(result))
    assert travelled.to_dict() == result.to_dict()
    assert travelled.events == result.events


# --- damage to the bytes ---------------------------------------------------------------------------


def loads_the_same_or_not_at_all(raw: bytes, path: Path, program: Program) -> bool:
    """Whether it loads; anything but the same program or a ProgramError fails."""
    path.unlink(missing_ok=True)  # file systems are slow at writing over what is there
    path.write_bytes(raw)
    try:
        loaded = Program.load(path)
    except ProgramError:
        return False
    assert loaded == program
    return True


@pytest.mark.parametrize("damage", [lambda byte, at: byte ^ 0xFF, lambda byte, at: byte ^ 1 << at % 8])
def test_no_single_byte_changes_a_program(
    damage: Callable[[int, int], int], file: Path, program: Program, scratch: Path
) -> None:
    raw = file.read_bytes()
    harmless = 0
    for at, byte in enumerate(raw):
        changed = raw[:at] + bytes([damage(byte, at)]) + raw[at + 1 :]
        harmless += loads_the_same_or_not_at_all(changed, scratch, program)
    assert harmless < len(raw) / 5  # dates and attributes of the archive's members


def test_no_truncated_file_is_a_program(file: Path, program: Program, scratch: Path) -> None:
    raw = file.read_bytes()
    assert not any(loads_the_same_or_not_at_all(raw[:n], scratch, program) for n in range(len(raw)))


@st.composite
def edits(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A piece of the file that is cut out, doubled, moved, overwritten, or a few flipped bits."""
    kind = draw(st.sampled_from(["cut", "double", "move", "overwrite", "flip"]))
    start, length, where = (draw(st.floats(0, 1, exclude_max=True)) for _ in range(3))
    noise = draw(st.binary(min_size=1, max_size=64))

    def edit(raw: bytes) -> bytes:
        a = int(start * len(raw))
        b = min(len(raw), a + 1 + int(length**3 * len(raw)))
        piece, rest = raw[a:b], raw[:a] + raw[b:]
        at = int(where * len(rest))
        if kind == "cut":
            return rest
        if kind == "double":
            return raw[:b] + piece + raw[b:]
        if kind == "move":
            return rest[:at] + piece + rest[at:]
        if kind == "overwrite":
            return raw[:a] + noise + raw[a + len(noise) :]
        changed = bytearray(raw)
        for n, byte in enumerate(noise):
            changed[(a + n * byte) % len(raw)] ^= 1 << byte % 8
        return bytes(changed)

    return edit


@given(edit=edits())
@examples(300)
def test_no_damage_to_its_bytes_changes_a_program(
    edit: Callable[[bytes], bytes], file: Path, program: Program, scratch: Path
) -> None:
    loads_the_same_or_not_at_all(edit(file.read_bytes()), scratch, program)


def test_swapped_members_are_no_program(file: Path, scratch: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        contents = [archive.read(name) for name in names]
    assert len(names) == 6
    for turn in range(1, len(names)):
        archived(scratch, zip(names, contents[turn:] + contents[:turn], strict=True))
        with pytest.raises(ProgramError):
            Program.load(scratch)


@pytest.mark.parametrize(
    "missing",
    [
        "program.json",
        "instructions.bin",
        "segments/0.bin",
        "segments/1.bin",
        "references.bin",
        "provenance.bin",
    ],
)
def test_a_missing_member_is_named(missing: str, file: Path, scratch: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist() if name != missing]
    archived(scratch, members)
    message = f"program {str(scratch)!r}: it has no {missing}; it is not a program file"
    with refused(ProgramError, message):
        Program.load(scratch)


def test_what_expands_beyond_its_size_is_not_unpacked(file: Path, scratch: Path) -> None:
    """64 MiB of zeros that claim to be the 48 bytes of a member."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("program.json", b"\0" * (64 << 20))
    raw = bomb.getvalue().replace(struct.pack("<I", 64 << 20), struct.pack("<I", 48))
    scratch.write_bytes(raw)
    tracemalloc.start()
    with pytest.raises(ProgramError, match="is damaged: Bad CRC-32"):
        Program.load(scratch)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


# --- damage to the manifest ------------------------------------------------------------------------


def tensor(name: str, /, **values: Any) -> Callable[[Any], None]:
    """Change entries of a tensor, or of its layout."""

    def change(manifest: Any) -> None:
        entry = next(t for t in manifest["tensors"] if t["name"] == name)
        for key, value in values.items():
            (entry if key in entry else entry["layout"])[key] = value

    return change


def prepared(**values: Any) -> Callable[[Any], None]:
    """Let the bias have a preparation."""
    return lambda manifest: next(t for t in manifest["tensors"] if t["name"] == "bias").update(
        preparation={"accepted": [-1, 1], "bounds": [-1, 1], "offset": 0} | values
    )


def top(**values: Any) -> Callable[[Any], None]:
    return lambda manifest: manifest.update(values)


def config(**values: Any) -> Callable[[Any], None]:
    return lambda manifest: manifest["config"].update(values)


DAMAGED: dict[str, tuple[Callable[[Any], object], str]] = {
    "newer": (
        top(version=4),
        "its format version is 4; this release reads up to 3, so a newer release of accel is needed",
    ),
    "newer in every way": (
        lambda manifest: {"format": "accel-program", "version": 99},
        "its format version is 99; this release reads up to 3, so a newer release of accel is needed",
    ),
    "version of the first generation": (
        config(post=1, par_bytes=16384, res_bytes=16384),
        "its format version is 1; a program for post=1 has version 2",
    ),
    "version zero": (top(version=0), "its format version is 0; versions start at 1"),
    "version of text": (top(version="1"), "version is '1' in its manifest; it must be an integer"),
    "version true": (top(version=True), "version is true in its manifest; it must be an integer"),
    "format of others": (top(format="other"), "it is an archive, but no program file"),
    "format of runs": (
        top(format="accel-run"),
        "it holds what a run took; 'accel diff' compares it with another run",
    ),
    "list": (lambda manifest: [manifest], "it is an archive, but no program file"),
    "no code": (
        lambda manifest: manifest.pop("code_bytes") and None,
        "its manifest has no 'code_bytes' where one is needed",
    ),
    "code of another size": (
        top(code_bytes=16),
        "its instructions.bin has {code} bytes; at most 16 are expected",
    ),
    "huge code": (
        top(code_bytes=1 << 60),
        "its instructions.bin has {code} bytes; the manifest says 1152921504606846976",
    ),
    "negative code": (top(code_bytes=-16), "its instructions.bin has {code} bytes; at most 0 are expected"),
    "offset of a fraction": (
        top(code_offset=4096.0),
        "code_offset is 4096.0 in its manifest; it must be an integer",
    ),
    "offset below zero": (
        top(code_offset=-16),
        "code_offset is -16 in its manifest; it must not be negative",
    ),
    "offset between": (top(code_offset=4100), "its instructions are not aligned to 16 bytes"),
    "offset beyond the window": (
        top(code_offset=1 << 28),
        "it occupies {beyond} bytes of DRAM; its window has 268435456",
    ),
    "duration": (
        top(compile_seconds="fast"),
        "compile_seconds is 'fast' in its manifest; it must be a duration",
    ),
    "duration of nan": (
        top(compile_seconds=float("nan")),
        "compile_seconds is nan in its manifest; it must be a duration",
    ),
    "source": (top(source=[1]), "source is [1] in its manifest; it must be an object"),
    "notes": (top(notes="none"), "notes is 'none' in its manifest; it must be an object"),
    "no geometry": (
        lambda manifest: manifest["config"].pop("block_in") and None,
        "its manifest has no 'block_in' where one is needed",
    ),
    "unknown field": (
        config(block_inn=4),
        "'block_inn' is not a configuration field; did you mean 'block_in'?",
    ),
    "bad field": (config(batch=3), "batch is 3 in configuration 'tiny'; it must be a power of two"),
    "fields too wide": (
        config(inp_bytes=1 << 26),
        "configuration 'tiny' needs 135 bits for Gemm; there are 128: "
        "make a scratchpad or the micro-op memory smaller",
    ),
    "timing of text": (config(serial="yes"), "serial is 'yes'; it must be an integer, as 64, 0x40 or 64KiB"),
    "role": (
        tensor("A", role="inout"),
        "the role of tensor 'A' is 'inout'; it must be input, output or constant",
    ),
    "dtype": (
        tensor("A", dtype="float32"),
        "the dtype of tensor 'A' is 'float32'; it must be int8, uint8 or int32",
    ),
    "name": (tensor("A", name="../A"), "the name of a tensor is '../A'; it must be an identifier"),
    "tensor below zero": (tensor("A", offset=-1), "offset is -1 in its manifest; it must not be negative"),
    "tensor beyond the window": (
        tensor("C", offset=1 << 28),
        "it occupies 268435504 bytes of DRAM; its window has 268435456",
    ),
    "layout of text": (tensor("A", shape="35"), "a layout has '35'; a list of integers is needed"),
    "layout of fractions": (
        tensor("A", shape=[3.5, 5]),
        "a layout has [3.5, 5]; a list of integers is needed",
    ),
    "layout of too many": (
        tensor("A", coefficients=[[1]]),
        "a layout of 2 by 4 dimensions has other coefficients",
    ),
    "layout of zero": (tensor("A", shape=[0, 5]), "a layout has a size below one or a negative coefficient"),
    "layout of elements": (
        tensor("A", element_dims=5),
        "element_dims is 5; the layout has 4 packed dimensions",
    ),
    "huge plain": (
        tensor("A", shape=[3 << 40, 5]),
        "tensor 'A' takes 26388279066624 bytes; the DRAM window has 268435456",
    ),
    "huge sums": (
        tensor("bias", shape=[(1 << 26) + 1]),
        "tensor 'bias' takes 268435460 bytes; the DRAM window has 268435456",
    ),
    "huge steps": (
        tensor("A", coefficients=[[1 << 40, 0, 1, 0], [0, 4, 0, 1]]),
        "tensor 'A' takes 17592186044424 bytes; the DRAM window has 268435456",
    ),
    "huge packed": (
        tensor("A", packed=[1 << 40, 1 << 40, 1, 4], coefficients=[[0, 0, 1, 0], [0, 0, 0, 1]]),
        f"it occupies {(1 << 82) + 8192} bytes of DRAM; its window has 268435456",
    ),
    "constant elsewhere": (tensor("B", offset=0), "it does not hold the 128 bytes of constant 'B'"),
    "output in two places": (
        lambda manifest: manifest["tensors"].append(manifest["tensors"][-1]),
        "output 'C' stands in DRAM more than once",
    ),
    "output that repeats": (
        tensor("C", packed=[3, 2, 2, 8], coefficients=[[1, 0, 0, 0], [0, 8, 0, 1]]),
        "output 'C' stands in DRAM more than once",
    ),
    **{
        f"{key} of a preparation beyond int64": (
            prepared(**{key: value}),
            f"a preparation has the number {1 << 70}; it must be in ±4294967295",
        )
        for key, value in (("bounds", [0, 1 << 70]), ("accepted", [0, 1 << 70]), ("offset", 1 << 70))
    },
    "tensor of two kinds": (
        tensor("bias", name="A"),
        "tensor 'A' stands twice, as ('input', 'int32', (9,)) and as ('input', 'int8', (3, 5))",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_does_not_hold_together_is_refused(
    case: str, program: Program, file: Path, scratch: Path
) -> None:
    change, message = DAMAGED[case]
    message = message.format(code=len(program.code), beyond=(1 << 28) + len(program.code))
    rewritten(file, scratch, change)
    with refused(ProgramError, f"program {str(scratch)!r}: {message}"):
        Program.load(scratch)


def test_a_program_may_fill_its_window(tmp_path: Path) -> None:
    layout = PackedLayout(shape=(8192,), packed=(8192,), element_dims=1, coefficients=((1,),))
    output = ImageTensor(name="C", role="output", dtype="int8", offset=0, layout=layout)
    program = handmade(config=TINY.override({"mem_size": 8192}), tensors=(output,))
    program.save(tmp_path / "full")
    assert Program.load(tmp_path / "full") == program
    program.dram()


def test_deep_nesting_is_refused(scratch: Path) -> None:
    archived(scratch, [("program.json", b"[" * 200_000)])
    with pytest.raises(ProgramError, match=r"is damaged: its program\.json cannot be read as JSON"):
        Program.load(scratch)


def test_a_file_of_an_older_release_takes_defaults(file: Path, scratch: Path) -> None:
    """Timing fields that did not exist yet."""
    rewritten(file, scratch, lambda manifest: manifest["config"].pop("stores_in_flight") and None)
    assert Program.load(scratch).config == TINY


def test_a_program_of_before_depthwise_macs_takes_the_default_banks(tmp_path: Path, scratch: Path) -> None:
    program = handmade(config=NAMED["tiny-int8"])
    program.save(tmp_path / "p.accel")
    rewritten(tmp_path / "p.accel", scratch, lambda manifest: manifest["config"].pop("inp_banks") or None)
    assert Program.load(scratch).config == NAMED["tiny-int8"]


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every value in a manifest, as the keys that lead to it."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [at, *(place for key in keys for place in places(data[key], (*at, key)))]


@pytest.fixture(scope="module")
def manifest(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        found: dict[str, Any] = json.loads(archive.read("program.json"))
    return found


odd_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.sampled_from([1 << 20, 1 << 31, 1 << 40, 1 << 63, 10**30, -(1 << 40)])
    | st.floats()
    | st.sampled_from(
        ["", "A", "B", "C", "S", "s0", "r0", "yo", "input", "output", "cast", "min", "//", "%"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "name"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(data=st.data())
@examples(600)
def test_no_manifest_does_worse_than_an_error(
    data: st.DataObject, manifest: dict[str, Any], file: Path, scratch: Path
) -> None:
    """One or two values replaced or gone: either the file is refused, or all that can be done with the
    program gives a result or an error of ours."""
    changed = json.loads(json.dumps(manifest))
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(places(changed)[1:]))
        target = changed
        for key in place[:-1]:
            target = target[key]
        if data.draw(st.integers(0, 3)):
            target[place[-1]] = data.draw(odd_values)
        else:
            del target[place[-1]]
    rewritten(file, scratch, lambda _: changed)
    try:
        program = Program.load(scratch)
    except ProgramError:
        return
    for use in (Program.check, Program.run, *(lambda p, s=stage: stage_text(p, s) for stage in STAGES)):
        with suppress(AccelError):
            use(program)


# --- foreign files ---------------------------------------------------------------------------------


def an_archive(*names: str) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name in names:
            archive.writestr(name, b"{}")
    return raw.getvalue()


class Malicious:
    """Ends the process when unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os._exit, (3,)


IS_NONE = "{} is not a program file; 'accel compile' writes such files"
ENDS_OTHERWISE = "it does not end as it must: it is cut short, or something follows it"
FOREIGN = {
    "empty": (b"", IS_NONE),
    "png": (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, IS_NONE),
    "text": (b"PK is no magic", IS_NONE),
    "pickle": (pickle.dumps(Malicious()), IS_NONE),
    "empty archive": (an_archive(), IS_NONE),
    "archive": (an_archive("a.txt"), "{}: it has no program.json; it is not a program file"),
    "archive like ours": (an_archive("program.json"), "{}: it is an archive, but no program file"),
    "start of an archive": (b"PK\x03\x04" + b"\0" * 100, f"{{}} is damaged: {ENDS_OTHERWISE}"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_refused(kind: str, tmp_path: Path) -> None:
    content, message = FOREIGN[kind]
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with refused(ProgramError, message.format(f"program {str(path)!r}")):
        Program.load(path)


@pytest.mark.parametrize(
    ("before", "behind", "message"),
    [
        (b"", b"junk\n", ENDS_OTHERWISE),
        (b"", b"\0", ENDS_OTHERWISE),
        (an_archive("a.txt"), b"", "something stands before it"),
    ],
    ids=["junk behind", "zero behind", "an archive before"],
)
def test_nothing_stands_around_a_program(
    before: bytes, behind: bytes, message: str, file: Path, scratch: Path
) -> None:
    """Which zipfile would pass over in silence."""
    scratch.write_bytes(before + file.read_bytes() + behind)
    with refused(ProgramError, f"program {str(scratch)!r} is damaged: {message}"):
        Program.load(scratch)


def test_a_model_is_told_what_makes_a_program_of_it(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x08\x08")
    with refused(
        ProgramError, f"program {str(path)!r} is not a program file; 'accel compile onnx' writes such files"
    ):
        Program.load(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_is_not_read_forever() -> None:
    with refused(
        ProgramError, "program '/dev/zero' is not a program file; 'accel compile' writes such files"
    ):
        Program.load("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_program_may_come_through_a_pipe(file: Path, program: Program) -> None:
    reader, writer = os.pipe()
    os.write(writer, file.read_bytes())
    os.close(writer)
    assert Program.load(f"/dev/fd/{reader}") == program
    os.close(reader)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with refused(ProgramError, f"program {str(tmp_path)!r} cannot be read: Is a directory"):
        Program.load(tmp_path)
    missing = tmp_path / "missing"
    with refused(ProgramError, f"program {str(missing)!r} cannot be read: No such file or directory"):
        Program.load(missing)


# --- writing ---------------------------------------------------------------------------------------


def test_a_path_that_cannot_be_written_is_refused(program: Program, tmp_path: Path) -> None:
    inside = tmp_path / "no" / "p.accel"
    with refused(
        ProgramError, f"{str(inside)!r} cannot be written: there is no folder {str(inside.parent)!r}"
    ):
        program.save(inside)
    with refused(ProgramError, f"{str(tmp_path)!r} cannot be written: it is a folder"):
        program.save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind root")
def test_missing_permission_is_refused(program: Program, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ProgramError, match=r"cannot be written: permission is missing$"):
        program.save(tmp_path / "p.accel")


@pytest.mark.parametrize("kind", [ProgramError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [None, b"old content"])
def test_an_interrupted_write_leaves_nothing_behind(
    kind: type[BaseException],
    old: bytes | None,
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "p.accel"
    if old is not None:
        path.write_bytes(old)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Disk(io.FileIO):
        def write(self, content: Any) -> int:
            super().write(content[:100])
            raise full if kind is ProgramError else KeyboardInterrupt

    monkeypatch.setattr("accel.base.atomic_files.os.fdopen", Disk)
    with pytest.raises(kind) as caught:
        program.save(path)
    if kind is ProgramError:
        assert str(caught.value) == f"{str(path)!r} cannot be written: No space left on device"
    assert [p.name for p in tmp_path.iterdir()] == ([] if old is None else ["p.accel"])
    assert old is None or path.read_bytes() == old


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")
def test_a_file_is_replaced_as_if_written(program: Program, file: Path, tmp_path: Path) -> None:
    """Its mode and a link to it stay; a new one has the mode that the umask asks for."""
    target, link = tmp_path / "target", tmp_path / "link"
    program.save(target)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    assert os.umask(umask) == umask
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("target")
    program.save(link)
    assert link.is_symlink()
    assert target.read_bytes() == file.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_written_not_replaced(program: Program) -> None:
    program.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# --- in memory -------------------------------------------------------------------------------------


def test_the_image_is_what_dram_holds(program: Program) -> None:
    memory = program.dram()
    base = program.config.mem_base
    assert memory.read(base + program.code_offset, len(program.code)).tobytes() == program.code
    for offset, content in program.segments:
        assert memory.read(base + offset, len(content)).tobytes() == content
    sizes = {t.name: t.nbytes for t in program.tensors}
    assert sizes == {"A": 3 * 2 * 4, "B": 2 * 2 * 8 * 4, "bias": 2 * 8 * 4, "C": 3 * 2 * 8}
    assert handmade(segments=((1 << 20, bytes(100)),)).size == (1 << 20) + 100
    assert program.size == max(
        program.code_offset + len(program.code), *(t.offset + t.nbytes for t in program.tensors)
    )


def test_a_window_too_small_is_refused(program: Program) -> None:
    small = program.with_timing(program.config.override({"mem_size": 4096}))
    with refused(
        ProgramError, f"the program occupies {program.size} bytes of DRAM; the window has mem_size=4096"
    ):
        small.dram()


def test_a_run_counts_the_tokens_it_starts_from() -> None:
    one = handmade(start=Start(tokens=(0, 0, 4, 0)))
    with refused(ProgramError, "the tokens at the start are [0, 0, 4, 0]; a counter holds 0..3"):
        one.with_timing(one.config.override({"token_bits": 2}))


def test_timing_is_replaced_and_geometry_kept(program: Program) -> None:
    other = program.with_timing(accel.machine("gemm8x8", read_latency=7).config)
    assert other.config.read_latency == 7
    assert other.config.bus_bits == 128
    assert (other.config.batch, other.config.block_in, other.config.block_out) == (1, 4, 8)
    assert other.code == program.code
    assert isinstance(other, Program)

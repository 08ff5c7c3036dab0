"""Files are written whole, with the mode that the user asked for."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from accel.base.atomic_files import write_atomically

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_mode_that_the_umask_leaves(mask: int, tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from accel.base.atomic_files import write_atomically\n"
        "os.umask(int(sys.argv[2]))\n"
        "write_atomically(Path(sys.argv[1]), b'new')\n"
    )
    target = tmp_path / "new"
    subprocess.run([sys.executable, "-c", script, str(target), str(mask)], check=True)
    assert target.read_bytes() == b"new"
    assert mode(target) == 0o666 & ~mask


def test_the_umask_of_other_threads_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one for the whole process: who sets it to zero to learn it opens others' files to everybody."""
    monkeypatch.setattr("os.umask", lambda _: pytest.fail("the umask was changed"))
    write_atomically(tmp_path / "new", b"new")
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_private_file_is_private_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "private"
    target.write_bytes(b"old")
    target.chmod(0o600)
    seen: list[int] = []
    replace = os.replace

    def watched(source: Path, to: Path) -> None:
        seen.append(mode(source))
        replace(source, to)

    def noted(path: Path, flags: int, bits: int) -> int:
        seen.append(bits)
        return opened(path, flags, bits)

    opened = os.open
    monkeypatch.setattr("os.replace", watched)
    monkeypatch.setattr("os.open", noted)
    write_atomically(target, b"new")
    assert seen == [0o600, 0o600]
    assert (target.read_bytes(), mode(target)) == (b"new", 0o600)


def test_a_name_that_is_taken_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["taken", "free"])
    monkeypatch.setattr("accel.base.atomic_files.secrets.token_hex", lambda _: next(names))
    (tmp_path / ".accel-taken").write_bytes(b"another's")
    write_atomically(tmp_path / "new", b"new")
    assert (tmp_path / ".accel-taken").read_bytes() == b"another's"
    assert (tmp_path / "new").read_bytes() == b"new"

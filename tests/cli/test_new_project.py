"""``accel new-project``."""

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Shell


def test_the_test_of_its_schedule_passes(accel: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "my-core"
    accel("new-project", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_schedule.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_bad_requests_are_refused_and_leave_nothing(accel: Shell, tmp_path: Path) -> None:
    for name in ("a b", "-x-", "a_"):
        assert accel("new-project", "--", str(tmp_path / name), code=2).err.startswith("accel: ")
        assert not (tmp_path / name).exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "'mine'" in accel("new-project", str(tmp_path / "full"), code=2).err
    assert (
        accel("new-project", str(tmp_path / "one"), "--json").json["files"][0]
        == ".github/workflows/simulate.yml"
    )

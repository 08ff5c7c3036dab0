"""The workflows run what is there."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

from bench import resources

ROOT = Path(__file__).parents[1]


def workflow(path: str) -> Any:
    """A workflow's content; YAML takes its key ``on`` for a truth."""
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_ci_runs_everything_on_every_python() -> None:
    jobs = workflow(".github/workflows/ci.yml")["jobs"]
    (job,) = jobs.values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in project["classifiers"]
    ]
    assert job["strategy"]["matrix"]["python"] == [found[1] for found in named if found]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_placing_has_a_workflow_of_its_own() -> None:
    """Of all configurations that the page has, each in a job."""
    (job,) = workflow(".github/workflows/fpga.yml")["jobs"].values()
    assert job["strategy"]["matrix"]["config"] == list(resources.DEFAULT)
    (command,) = (step["run"] for step in job["steps"] if "run" in step)
    target, *settings = command.split()[1:]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"\n{target}: " in makefile
    for setting in settings:
        if "=" in setting:
            assert f"$({setting.partition('=')[0]})" in makefile


ADDRESS = "https://code.example/someone/accel"


def named_urls(address: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".ci" / "project-urls"), address, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_release_names_the_repository_that_makes_it(tmp_path: Path) -> None:
    """The source has no address, and the workflow refuses a wheel without one."""
    source = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "urls" not in tomllib.loads(source)["project"]
    file = tmp_path / "pyproject.toml"
    file.write_text(source, encoding="utf-8")
    for wrong in ("http://code.example/a/b", "https://code.example", ""):
        done = named_urls(wrong, file)
        assert done.returncode != 0
        assert "address" in done.stderr
    assert file.read_text(encoding="utf-8") == source
    assert named_urls(ADDRESS, file).returncode == 0
    urls = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["urls"]
    assert urls["Repository"] == ADDRESS
    assert all(url.startswith(ADDRESS) for url in urls.values())
    paths = [url.partition("/blob/main/")[2] for url in urls.values()]
    assert [path for path in paths if path and not (ROOT / path).exists()] == []
    assert "already" in named_urls(ADDRESS, file).stderr
    steps = workflow(".github/workflows/release.yml")["jobs"]["build"]["steps"]
    (build,) = (step for step in steps if ".ci/packages" in step.get("run", ""))
    assert build["env"] == {"PROJECT_URL": "${{ github.server_url }}/${{ github.repository }}"}
    assert any("METADATA" in step.get("run", "") for step in steps[steps.index(build) :])

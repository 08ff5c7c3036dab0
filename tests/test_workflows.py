"""The workflows run what is there."""

import re
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

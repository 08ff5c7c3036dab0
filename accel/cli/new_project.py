import re
from importlib.resources import files
from pathlib import Path

from accel.base.atomic_files import write_folder
from accel.base.errors import AccelError
from accel.cli.stdout import wrote
from accel.cli.terminal_output import print_json, show
from accel.run.result import SCHEMA_VERSION

FILES = {
    "README.md": "README.md.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "schedule.py": "schedule.py.txt",
    "test_schedule.py": "test_schedule.py.txt",
    "test_core.py": "test_core.py.txt",
    ".github/workflows/simulate.yml": "simulate.yml.txt",
}
"""Source of each file, in ``project_template``."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Python's packaging specification "Names and normalization"."""


def project_files(name: str) -> dict[str, bytes]:
    """Return files by name. Raise an AccelError for a name that a project cannot have."""
    if not _NAME.fullmatch(name):
        raise AccelError(
            f"the project's name is {name!r}; it must have letters, digits, '.', '_' and '-' alone, and "
            f"begin and end with a letter or a digit"
        )
    template = files(__package__) / "project_template"
    texts = {target: (template / source).read_text(encoding="utf-8") for target, source in FILES.items()}
    return {target: text.replace("PROJECT_NAME", name).encode() for target, text in texts.items()}


def new_project(folder: Path, as_json: bool) -> None:
    written = project_files(folder.resolve().name)
    write_folder(folder, written)
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, "output": str(folder), "files": sorted(written)})
        return
    for name in written:
        show(name)
    wrote(folder)

"""Files of the studio's page."""

from importlib.resources import files


def asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

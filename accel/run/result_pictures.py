"""What a result shows of itself. Other modules draw it, and they need results, so that they are imported by
name when they are first used."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

_MAKERS = {
    "report": "accel.views:Report",
    "timeline": "accel.views:Timeline",
    "plot": "accel.views.notebook_widget:widget",
    "advise": "accel.run.machine_advice:advise",
}
"""A result's methods, and the function or class, as module and name, that each calls with the result."""


class Picture(Protocol):
    """A picture of a run: a page or a chart, which a notebook shows."""

    def save(self, path: str | Path) -> None:
        """Write a file in the format of its suffix."""


def picture(method: str, result: object, **options: Any) -> Any:
    """Return what a method of a result shows.

    Args:
        options: of the function or class that makes it.
    """
    module, _, maker = _MAKERS[method].partition(":")
    return getattr(import_module(module), maker)(result, **options)

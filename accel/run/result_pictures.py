"""Pictures of a result. Their modules import results, so they are imported at first use."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

_MAKERS = {
    "report": "accel.views:Report",
    "timeline": "accel.views:Timeline",
    "plot": "accel.views.notebook_widget:widget",
    "advise": "accel.run.machine_advice:advise",
}
"""By a result's method, module and name that it calls with the result."""


class Picture(Protocol):
    """A page or chart of a run, which a notebook shows."""

    def save(self, path: str | Path) -> None: ...


def picture(method: str, result: object, **options: Any) -> Any:
    module, _, maker = _MAKERS[method].partition(":")
    return getattr(import_module(module), maker)(result, **options)

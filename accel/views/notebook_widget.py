"""A run in a notebook (extra ``notebook``)."""

import re
from typing import Any

from accel.base.errors import AccelError
from accel.base.optional_extras import not_installed
from accel.run.result import Result
from accel.views.analyzed_run import analyze_run
from accel.views.page_sections import page_style
from accel.views.run_report import module, run_view

_RENDER = """
function render({ model, el }) {
  const inside = el.shadowRoot || el.attachShadow({ mode: "open" });
  const sheet = document.createElement("style"), root = document.createElement("div");
  sheet.textContent = model.get("_style");
  root.className = "page";
  inside.replaceChildren(sheet, root);
  let drawn = null;
  const draw = () => {
    const view = model.get("view");
    if (drawn) drawn.update(view); else drawn = accel.view(root, view);
  };
  // the list of instructions measures its own width, so it must be on the page first
  requestAnimationFrame(draw);
  model.on("change:view", draw);
  return () => { if (drawn) drawn.close(); };
}
export default { render };
"""


def widget_module() -> str:
    """Return an ES module with ``accel.view`` and ``render``."""
    return module().replace("export default accel;\n", "") + _RENDER


def widget_style() -> str:
    """Return the style sheet inside a shadow root."""
    scoped = page_style().replace(", .chart:root", "").replace("body {", ".page {")
    return re.sub(r":root((?::not\([^)]*\)|\[[^]]*\])+)", r":host(\1)", scoped).replace(":root", ":host")


def widget(result: Result, *, name: str | None = None) -> Any:
    """Return an ``anywidget.AnyWidget`` with search, measuring and loops.

    Its trait ``view`` is a :func:`~accel.views.run_report.run_view`.

    Raises:
        AccelError: time was not simulated, or anywidget is not installed.
    """
    try:
        import anywidget  # an extra
        import traitlets  # comes with it
    except ImportError:
        raise AccelError(not_installed("widgets need anywidget", "notebook")) from None

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = widget_module()
        _style = traitlets.Unicode(widget_style()).tag(sync=True)
        view = traitlets.Dict().tag(sync=True)

    return View(view=run_view(analyze_run(result, name)))

"""The view of a run in a notebook, with everything that moves in it; needs the extra ``notebook``."""

import re
from typing import Any

from accel.base.errors import AccelError
from accel.base.extras import not_installed
from accel.run.result import Result
from accel.views.report import module, run_view, style
from accel.views.scene import scene

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
  // the list of instructions measures itself, so it must be on the page first
  requestAnimationFrame(draw);
  model.on("change:view", draw);
  return () => { if (drawn) drawn.close(); };
}
export default { render };
"""


def widget_module() -> str:
    """The ES module that notebooks load: the component, and how a widget draws by it."""
    return module().replace("export default accel;\n", "") + _RENDER


def widget_style() -> str:
    """The style sheet of a view that stands in a page of others, behind a shadow root."""
    alone = style().replace(", .chart:root", "").replace("body {", ".page {")
    return re.sub(r":root((?::not\([^)]*\)|\[[^]]*\])+)", r":host(\1)", alone).replace(":root", ":host")


def widget(result: Result, *, name: str | None = None) -> Any:
    """The view of a run as a widget of a notebook: the chart can be searched and measured there, and loops
    lead to instructions. Its trait ``view`` is plain data; setting it to another run's, from
    :func:`accel.views.report.run_view`, draws that.

    Args:
        result: of a run in which time was simulated.
        name: of the program, for the title.

    Returns:
        An ``anywidget.AnyWidget``.

    Raises:
        AccelError: time was not simulated, or anywidget is not installed.
    """
    try:
        import anywidget  # noqa: PLC0415  # an extra
        import traitlets  # noqa: PLC0415  # comes with it
    except ImportError:
        raise AccelError(not_installed("widgets need anywidget", "notebook")) from None

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        """A view in a notebook."""

        _esm = widget_module()
        _style = traitlets.Unicode(widget_style()).tag(sync=True)
        view = traitlets.Dict().tag(sync=True)

    return View(view=run_view(scene(result, name)))

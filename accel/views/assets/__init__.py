"""Style sheets and scripts of the pages."""

from importlib.resources import files

_CHART_SCRIPTS = ("chart_data.js", "chart_drawing.js", "chart.js", "chart_tools.js")
_VIEW_SCRIPTS = ("instruction_list.js", "stages_view.js", "view.js")


def asset(name: str) -> str:
    """Return the text of a file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def chart_script() -> str:
    """Return the script of ``accel.chart``."""
    return "".join(map(asset, _CHART_SCRIPTS))


def view_script() -> str:
    """The script of ``accel.view``, with the chart."""
    return chart_script() + "".join(map(asset, _VIEW_SCRIPTS))

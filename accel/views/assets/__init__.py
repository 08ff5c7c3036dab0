"""Style sheets and scripts of the pages."""

from importlib.resources import files

_CHART_SCRIPTS = ("chart_data.js", "chart_drawing.js", "chart.js", "chart_tools.js")
_VIEW_SCRIPTS = ("instruction_list.js", "stages_view.js", "view.js")


def asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def chart_script() -> str:
    return "".join(map(asset, _CHART_SCRIPTS))


def view_script() -> str:
    return chart_script() + "".join(map(asset, _VIEW_SCRIPTS))

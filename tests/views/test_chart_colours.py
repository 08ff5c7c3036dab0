"""One colour has one meaning: kinds of instructions, states, tokens, units, and layers are told apart."""

import math
import re
from importlib.resources import files
from itertools import combinations

import pytest

CSS = (files("accel.views.assets") / "chart.css").read_text(encoding="utf-8")
KINDS = ("transfer", "gemm", "alu", "other")
STATES = ("busy", "memory", "token")
UNITS = ("unit0", "unit1", "unit2", "unit3")
LABEL = "#10151a"
"""Colour of the texts on instructions."""
MIN_DISTANCE = 0.1
"""In OKLab. For example, the yellow of the ALU and the orange of memory are 0.12 apart."""
MIN_CONTRAST = 4.5
"""Of texts on their ground, by WCAG."""

Colour = tuple[float, float, float]


def linear(text: str) -> Colour:
    values = [int(text[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def oklab(text: str) -> Colour:
    """The colour in a space in which distances are as large as they look."""
    r, g, b = linear(text)
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    medium = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def contrast(one: str, other: str) -> float:
    def luminance(text: str) -> float:
        red, green, blue = linear(text)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def theme(name: str) -> dict[str, str]:
    """The colours of a theme by name; the dark one replaces some of the light ones."""
    light = re.search(r"^\.chart \{(.*?)\}", CSS, re.DOTALL | re.MULTILINE)
    dark = re.search(r'^:root\[data-theme="dark"\] \.chart \{(.*?)\}', CSS, re.DOTALL | re.MULTILINE)
    assert light is not None
    assert dark is not None
    text = light[1] + (dark[1] if name == "dark" else "")
    found = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6});", text))
    return found | dict(re.findall(r"\.chart \.(hue\d) \{ fill: (#[0-9a-f]{6}); \}", CSS))


@pytest.mark.parametrize("name", ["light", "dark"])
def test_layers_have_a_palette_of_their_own(name: str) -> None:
    colours = theme(name)
    hues = [f"hue{n}" for n in range(8)]
    others = [*KINDS, *STATES, *UNITS, "war", "fault", "ground", "track"]
    pairs = [*combinations(hues, 2), *((hue, other) for hue in hues for other in others)]
    close = [pair for pair in pairs if math.dist(*(oklab(colours[one]) for one in pair)) < MIN_DISTANCE]
    assert close == []
    assert {hue: contrast(colours[hue], LABEL) >= MIN_CONTRAST for hue in hues} == dict.fromkeys(hues, True)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_kinds_and_states_are_told_apart(name: str) -> None:
    colours = theme(name)
    pairs = [*combinations((*KINDS, *STATES, "fault"), 2)]
    close = [pair for pair in pairs if math.dist(*(oklab(colours[one]) for one in pair)) < MIN_DISTANCE]
    assert close == []

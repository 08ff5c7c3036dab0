from pathlib import Path

import pytest

from accel.core.config import NAMED, SPECS, Config
from accel.core.config_manual import config_manual

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_document_is_up_to_date() -> None:
    """``make golden`` regenerates the document."""
    assert DOCUMENT.read_text(encoding="utf-8") == config_manual()


@pytest.mark.parametrize("name", SPECS)
def test_every_field_has_a_row(name: str) -> None:
    spec = SPECS[name]
    (row,) = [line for line in config_manual().splitlines() if line.startswith(f"| `{name}` | {spec.doc} |")]
    assert row.endswith(f" | {spec.kind} | {spec.affects} |")
    assert spec.affects


def test_every_named_machine_has_a_column() -> None:
    (heads,) = [line for line in config_manual().splitlines() if line.startswith("| field | unit | `vta`")]
    assert heads == "| field | unit | " + " | ".join(f"`{name}`" for name in NAMED) + " |"


def test_values_of_named_machines() -> None:
    manual = config_manual()
    assert "| `bus_bits` | bits | 64 | 128 | 64 | 64 | 64 | 128 | 64 | 64 |" in manual
    assert "| `post_lanes` | values | - | - | - | - | 0 | 0 | 0 | 2 |" in manual
    assert f"| inp depth | elements | {Config().inp_depth} |" in manual

from accel.core.config import NAMED
from accel.core.isa_c_header import isa_c_header
from accel.core.isa_manual import isa_manual
from tests.cli.conftest import Shell


def test_the_manual_of_any_machine(accel: Shell) -> None:
    assert accel("isa").text == isa_manual(NAMED["vta"])
    assert accel("isa", "--config", "tiny").text == isa_manual(NAMED["tiny"])
    assert accel("isa", "--config", "tiny", "--c").text == isa_c_header(NAMED["tiny"])
    wider = NAMED["tiny"].override({"batch": 2})
    assert accel("isa", "--config", "tiny", "--set", "batch=2").text == isa_manual(wider)


def test_bad_input(accel: Shell) -> None:
    message = "'vat' is not a configuration; did you mean 'vta'?; the path of a TOML or JSON file works too"
    accel.refused("isa", "--config", "vat", message=message)

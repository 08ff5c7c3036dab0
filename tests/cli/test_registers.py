from accel.core.register_manual import c_header, registers_manual
from tests.cli.conftest import Shell


def test_reference_and_header(accel: Shell) -> None:
    assert accel("registers").text == registers_manual()
    assert accel("registers", "--c").text == c_header()

"""Lists of numbers in data statements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.assembly.integer_lists import MOST_VALUES, format_integers, parse_data, parse_integer
from accel.base.errors import ProgramError
from accel.core.config import NAMED
from tests.expect import refused

TINY = NAMED["tiny"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int8", "", b""),
        ("int8", "1 -2 0x7f -0x80 0b11 0o17", bytes([1, 254, 127, 128, 3, 15])),
        ("int8", "0..3 2..-1 5..5", bytes([0, 1, 2, 3, 2, 1, 0, 255, 5])),
        ("int8", "-3..-1 7*3 -1*2 9*0", bytes([253, 254, 255, 7, 7, 7, 255, 255])),
        ("int32", "1 -2", b"\x01\0\0\0\xfe\xff\xff\xff"),
        ("int32", "-0x80000000 2147483647", b"\0\0\0\x80\xff\xff\xff\x7f"),
        ("hex", "00ff 1a", b"\x00\xff\x1a"),
        ("zero", "3", b"\0\0\0"),
        ("zero", "0", b""),
        ("uop", "1,2,3 0,0,0", (1 | 2 << 7 | 3 << 14).to_bytes(4, "little") + bytes(4)),
    ],
)
def test_data(kind: str, text: str, expected: bytes) -> None:
    assert parse_data(kind, text.split(), TINY) == expected


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("int8", "128", "128 does not fit int8; it must be in -128..127"),
        ("int8", "120..130", "130 does not fit int8; it must be in -128..127"),
        ("int8", "130..120", "130 does not fit int8; it must be in -128..127"),
        ("int8", "200*3", "200 does not fit int8; it must be in -128..127"),
        ("int32", "2147483648", "2147483648 does not fit int32; it must be in -2147483648..2147483647"),
        ("int8", "x", "'x' stands where a number is needed"),
        ("int8", "1..", "'1..' stands where a number is needed"),
        ("int8", "1*x", "'x' stands where a number of repetitions is needed"),
        ("int8", "1*-1", "'1*-1' stands for -1 numbers; a statement holds 0..16777216"),
        ("int8", "0*99999999", "'0*99999999' stands for 99999999 numbers; a statement holds 0..16777216"),
        (
            "int32",
            "0..99999999999",
            "'0..99999999999' stands for 100000000000 numbers; a statement holds 0..16777216",
        ),
        ("hex", "0", "'0' is not hexadecimal text of whole bytes"),
        ("hex", "zz", "'zz' is not hexadecimal text of whole bytes"),
        ("zero", "-1", ".zero has '-1'; it takes a number of bytes up to 16777216"),
        ("zero", "1 2", ".zero has '1 2'; it takes a number of bytes up to 16777216"),
        ("zero", "", ".zero has ''; it takes a number of bytes up to 16777216"),
        ("uop", "1,2", "'1,2' stands where a micro-op is needed, as 0,1,2 for dst, src and wgt"),
        ("uop", "1,2,x", "'x' stands where a number is needed"),
        ("uop", "128,0,0", "MicroOp.dst is 128; it has 7 bits (0..127) in configuration 'tiny'"),
        ("uop", f"7,{10**20},2", f"MicroOp.src is {10**20}; it has 7 bits (0..127) in configuration 'tiny'"),
        (
            "uop",
            f"7,0,{-(10**20)}",
            f"MicroOp.wgt is -{10**20}; it has 7 bits (0..127) in configuration 'tiny'",
        ),
        ("int64", "1", "'.int64' is not a kind of data; did you mean 'int16'?"),
    ],
)
def test_data_that_is_none(kind: str, text: str, message: str) -> None:
    with refused(ProgramError, message):
        parse_data(kind, text.split(), TINY)


def test_a_statement_holds_as_much_as_it_says() -> None:
    assert len(parse_data("int8", [f"7*{MOST_VALUES}"], TINY)) == MOST_VALUES
    with pytest.raises(ProgramError, match="stands for 1 numbers"):
        parse_data("int8", [f"7*{MOST_VALUES}", "1*1"], TINY)


def test_what_is_needed_is_said() -> None:
    with refused(ProgramError, "'A' stands where an offset is needed"):
        parse_integer("A", "an offset")


@given(st.lists(st.sampled_from([-128, -1, 0, 0, 0, 5, 127]) | st.integers(-128, 127), max_size=40))
def test_integers_read_back(values: list[int]) -> None:
    text = format_integers(np.array(values, dtype=np.int8))
    assert parse_data("int8", text.split(), TINY) == np.array(values, dtype=np.int8).tobytes()


def test_equal_numbers_are_written_once() -> None:
    assert format_integers(np.array([1, 1, 1, 2, 2, 2, 2, 1])) == "1 1 1 2*4 1"

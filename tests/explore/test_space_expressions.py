"""Expressions of search spaces compute as Python does, and cannot do anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import SweepError
from accel.explore.space_expressions import Expression
from tests.expect import refused

VALUES = {"a": 6, "b": 4, "c": 0}


def value(text: str) -> float:
    return Expression(text, VALUES, "the constraint").value(VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "a * b <= 24",
        "a < b < 9",
        "b < a < 9",
        "a == 6 and not c",
        "c or a != 6",
        "a if c else b",
        "max(a, b, 9) - min(a, b)",
        "abs(b - a) ** 2",
        "a // b + a % b",
        "a / b",
        "-a + +b",
        " a ",
    ],
)
def test_a_value_is_that_of_python(text: str) -> None:
    expected = eval(text.strip(), {}, VALUES)
    assert value(text) == expected


@given(
    st.recursive(
        st.sampled_from([*VALUES, "1", "3"]),
        lambda one: st.tuples(one, st.sampled_from(["+", "-", "*", "<", "<=", "==", ">"]), one).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        max_leaves=8,
    )
)
def test_random_expressions(text: str) -> None:
    assert value(text) == eval(text, {}, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "open(a)",
        "a.real",
        "a[0]",
        "[a]",
        "(lambda: a)()",
        "'text'",
        "a & b",
        "max(a)",
        "abs(a, b)",
        "max(a, b, key=abs)",
        "a in b",
        "f'{a}'",
        "(x := a)",
        "1j",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match="expressions have numbers, fields, arithmetic"):
        Expression(text, VALUES, "the constraint")


def test_unknown_names_are_refused() -> None:
    with refused(SweepError, "the constraint 'aa < 2' names 'aa'; did you mean 'a'?"):
        Expression("aa < 2", VALUES, "the constraint")


@pytest.mark.parametrize("text", ["a <", "", "a = 2", "a; b", "(" * 500, "\0"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match="is not an expression"):
        Expression(text, VALUES, "the constraint")


@pytest.mark.parametrize("text", [3, None, ["a"], "a + " * 400 + "a"])
def test_other_values_are_refused(text: object) -> None:
    with pytest.raises(SweepError, match="must be an expression in quotes"):
        Expression(text, VALUES, "the constraint")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a / c", "divides by zero"),
        ("a % c", "divides by zero"),
        ("9 ** 9 ** 9", "has the exponent"),
        ("2 ** -1", "has the exponent"),
        ("(2 ** 100) * (2 ** 100)", "exceeds"),
    ],
)
def test_results_are_bounded(text: str, message: str) -> None:
    with pytest.raises(SweepError, match=message):
        value(text)

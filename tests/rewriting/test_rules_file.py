"""Rules of a user's file: what is checked before they are used."""

import pytest

from accel.base.errors import GraphError, MismatchError
from accel.rewriting.rules_file import load_rules

HEAD = """
from accel.graph.elementwise_operators import Clip
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.pattern import make, op, tensor
from accel.rewriting.rule import Rule

def clips(rng):
    draw = InstanceBuilder(rng)
    x = draw.byte_input((3, 4), "int8")
    return draw.done(draw.node(Clip(low=-5, high=9), draw.node(Clip(low=-9, high=5), x)))

def joined(match):
    first, second = (match.operator(name, Clip) for name in ("first", "second"))
    return make(Clip(low=max(first.low, second.low), high=min(first.high, second.high)), match["x"])

def rule(**changes):
    return Rule(**(dict(
        name="my-clips", text="Two Clips become one.", replacement=joined, instance=clips,
        pattern=op(Clip, op(Clip, tensor("x"), name="first"), name="second"), simplifies=True,
    ) | changes))
"""


def load(tmp_path, code):
    path = tmp_path / "rules.py"
    path.write_text(HEAD + code)
    return load_rules(path)


def test_rules_are_loaded_and_checked(tmp_path):
    assert [one.name for one in load(tmp_path, "RULES = [rule()]")] == ["my-clips"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "has no RULES; it must be a list or tuple"),
        ("RULES = 7", "has no RULES"),
        ("RULES = [rule(), 7]", "has no RULES"),
        ("1 / 0", "the code in .* raises ZeroDivisionError: division by zero"),
        ("def f(:", "the code in .* raises SyntaxError"),
        ("RULES = [rule(instance=None)]", "rule 'my-clips' has no generator of instances"),
        ("RULES = [Rule(name='a', text='b', pattern=None, replacement=joined)]", "TypeError.*instance"),
        ("RULES = [rule(), rule()]", "there are two rules 'my-clips'"),
        ("RULES = [rule(name='transpose-pair')]", "there are two rules 'transpose-pair'"),
        ("RULES = [rule(instance=lambda rng: 1 / 0)]", "the check of rule 'my-clips' raises ZeroDivision"),
        ("RULES = [rule(replacement=lambda match: None)]", "applies to 0 of 20 drawn graphs"),
        (
            "RULES = [rule(replacement=lambda match: make(Clip(), match['x'], dtype='uint8'))]",
            "GraphError|they must have one dtype|must be equal",
        ),
    ],
)
def test_a_bad_file_is_refused(tmp_path, code, message):
    with pytest.raises(GraphError, match=message):
        load(tmp_path, code)


def test_a_wrong_rule_is_refused(tmp_path):
    with pytest.raises(MismatchError, match=r"rule 'my-clips': .* values of .* differ in instance"):
        load(tmp_path, "RULES = [rule(replacement=lambda match: make(Clip(low=0), match['x']))]")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(OSError, match="no_rules"):
        load_rules(tmp_path / "no_rules.py")


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("RULES = []")
    with pytest.raises(GraphError, match=r"its name must end in \.py"):
        load_rules(path)

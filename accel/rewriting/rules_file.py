"""A user's rules in a Python file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from accel.base.errors import AccelError, GraphError
from accel.rewriting.rule import Rule
from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES

NAME = "RULES"


def load_rules(path: str | os.PathLike[str]) -> tuple[Rule, ...]:
    """Execute a file of Python code, and return its ``RULES`` after a check of each.

    Raises:
        GraphError: the code fails or defines no rules, or a rule cannot be used.
        MismatchError: the two sides of a rule differ.
        OSError: the file cannot be read.
    """
    file = Path(path)
    file.read_bytes()  # a missing file is no error of the code
    spec = spec_from_file_location("accel_user_rules", file)
    if spec is None or spec.loader is None:
        raise GraphError(f"{str(file)!r} is given as a file of rules; its name must end in .py")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any: it is the user's code
        raise GraphError(f"the code in {str(file)!r} raises {_describe(error)}") from error
    found = getattr(module, NAME, None)
    if not isinstance(found, list | tuple) or not all(isinstance(one, Rule) for one in found):
        raise GraphError(f"{str(file)!r} has no {NAME}; it must be a list or tuple of accel.rewriting.Rule")
    return checked_rules(found)


def checked_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Check each rule on 20 drawn graphs, with errors as :func:`load_rules`."""
    found = tuple(rules)
    names = {rule.name for rule in RULES}
    for rule in found:
        if not isinstance(rule, Rule):
            raise GraphError(f"a rule is {type(rule).__name__}; it must be accel.rewriting.Rule")
        if rule.name in names:
            raise GraphError(f"there are two rules {rule.name!r}; names must be unique")
        names.add(rule.name)
        try:
            check_rule(rule)
        except AccelError:
            raise
        except Exception as error:  # any: it is the user's code
            raise GraphError(f"the check of rule {rule.name!r} raises {_describe(error)}") from error
    return found


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

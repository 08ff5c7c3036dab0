"""JSON and TOML types in messages."""

import reprlib

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "an integer",
    float: "a number",
}
_WORDS = {None: "null", True: "true", False: "false"}


def kind_name(kind: type) -> str:
    return _KINDS[kind]


def kind_of(value: object) -> str:
    """Return for example ``a list``. null, true and false are types of their own."""
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "something else")


def shown(value: object) -> str:
    return _WORDS[value] if value is None or isinstance(value, bool) else reprlib.repr(value)

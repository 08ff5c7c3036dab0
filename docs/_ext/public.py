"""References by the place where something is defined lead to its public name, by which the pages present it.

Docstrings refer to ``accel.run.program.Program``, which their readers have in front of them; the pages
describe ``accel.Program``, so that the places inside may change without them. What exists but stands on no
page becomes plain text; what does not exist remains a warning.
"""

import importlib
from functools import reduce
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PUBLIC = ("accel", "accel.te", "accel.views", "accel.sweeps", "accel.assembly", "accel.core.isa")
"""Modules whose ``__all__`` names what is public; the first that names something wins."""


def public_names() -> dict[str, str]:
    """Public names by the places where they are defined."""
    found: dict[str, str] = {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            place, qualified = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
            if place and qualified:
                found.setdefault(f"{place}.{qualified}", f"{module_name}.{name}")
    return found


NAMES = public_names()


def public_name(target: str) -> str:
    """The public name of something, or of the class it is in; itself if it has none."""
    inner, rest = target, ""
    while inner:
        if inner in NAMES:
            return NAMES[inner] + rest
        inner, _, last = inner.rpartition(".")
        rest = f".{last}{rest}"
    return target


def exists(target: str) -> bool:
    """Whether there is a module, or something in one, of this name."""
    module, names = target, []
    while module:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            names.insert(0, last)
            continue
        try:
            reduce(getattr, names, found)
        except AttributeError:
            return False
        return True
    return False


def resolve(app: Sphinx, environment: BuildEnvironment, node: pending_xref, content: nodes.Element) -> Any:
    """Called by Sphinx for a reference that leads nowhere."""
    if node.get("refdomain") != "py":
        return None
    target = public_name(node["reftarget"])
    if not target.startswith("accel."):
        node["refspecific"] = True  # a neighbour by its bare name; it may stand on a page by another path
    kind = node["reftype"]
    domain = environment.get_domain("py")
    found = domain.resolve_xref(environment, node["refdoc"], app.builder, kind, target, node, content)
    return content if found is None and exists(node["reftarget"]) else found


def readable(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Called by Sphinx for a signature: what is no Python would keep it from being laid out."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", readable)
    return {"parallel_read_safe": True}

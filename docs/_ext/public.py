"""Resolve references to the place of a definition as references to the public name.

Docstrings refer, for example, to ``accel.run.program.Program``, which readers of the source see. The pages
describe ``accel.Program``, so that private modules can move. A reference to something that exists but has no
entry on a page becomes plain text. A reference to something that does not exist remains a warning.
"""

import importlib
from functools import reduce
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PUBLIC = (
    "accel",
    "accel.te",
    "accel.views",
    "accel.sweeps",
    "accel.explore",
    "accel.assembly",
    "accel.core.config",
    "accel.core.isa",
)
"""Modules whose ``__all__`` lists public names. The first module with a name wins."""


def public_names() -> dict[str, str]:
    """Return public names by the place of the definition."""
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
    """Return the public name of an object or of its class, or the name itself if it has none."""
    inner, rest = target, ""
    while inner:
        if inner in NAMES:
            return NAMES[inner] + rest
        inner, _, last = inner.rpartition(".")
        rest = f".{last}{rest}"
    return target


def exists(target: str) -> bool:
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
    if node.get("refdomain") != "py":
        return None
    target = public_name(node["reftarget"])
    if not target.startswith("accel."):
        node["refspecific"] = True  # a bare name in the same module, whose entry may have another path
    kind = node["reftype"]
    domain = environment.get_domain("py")
    found = domain.resolve_xref(environment, node["refdoc"], app.builder, kind, target, node, content)
    return content if found is None and exists(node["reftarget"]) else found


def readable(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Replace ``<factory>`` in a signature, which Sphinx cannot parse as Python."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", readable)
    return {"parallel_read_safe": True}

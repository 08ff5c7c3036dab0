"""Strategies by which layers wait for one another."""

from collections.abc import Mapping

ONCE, EACH, MIXED = (
    "once for each layer",
    "for what each transfer reads",
    "each layer as is better for it",
)
"""As network files name them."""
WAIT_TEXTS: Mapping[str, str] = {
    ONCE: "once per layer",
    EACH: "for the STOREs of their own data",
    MIXED: "as is faster for each layer",
}
"""Completes the sentence "LOADs wait ..."."""

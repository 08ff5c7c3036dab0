"""Options that choose a search for a better graph."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from accel.base.errors import AccelError
from accel.base.records import as_dict, field_names
from accel.base.rewrite_choices import RELAXATION, SEARCHES_BY_COST, SECONDS, Search


class RewriteRequest(Struct, frozen=True, kw_only=True):
    """Values of ``rewrite_options``."""

    rewrite: Search = "greedy"
    rules: Path | None = None
    relaxation: float = RELAXATION
    rewrite_seconds: float = SECONDS

    @classmethod
    def take(cls, options: dict[str, Any]) -> "RewriteRequest":
        return cls(**{one: options.pop(one) for one in field_names(cls) if one in options})

    @property
    def build_options(self) -> dict[str, Any]:
        """Options of ``build_or_read`` for this search."""
        found: dict[str, Any] = {"rewrite": self.rewrite, "rules": self.rules}
        if self.rewrite in SEARCHES_BY_COST:
            from accel.rewriting.search_result import SearchLimits  # programs need none

            found["limits"] = SearchLimits(seconds=self.rewrite_seconds)
        if self.rewrite == "backtrack":
            found["relaxation"] = self.relaxation
        return found

    def check_unused(self, reason: str) -> None:
        """Raise an AccelError for options of commands that compile nothing. ``reason`` completes the
        message, for example ``--backend is not``."""
        for name, value in as_dict(self).items():
            if value != getattr(RewriteRequest(), name):
                raise AccelError(f"--{name.replace('_', '-')} is given, and {reason}")

"""The options of ``accel run`` and their checks."""

from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from accel.base.errors import AccelError, ProgramFault
from accel.base.run_choices import UNTIMED
from accel.cli.rewrite_request import RewriteRequest
from accel.cli.shared_options import machine_row, parse_settings
from accel.core.config import Config
from accel.network.model_files import is_model
from accel.run.result import SCHEMA_VERSION, error_dict

DIGITS = Path("digits")
"""The network of accel, unless a file has this name."""


class RunRequest(Struct, frozen=True, kw_only=True, dict=True):
    """Options as in ``accel run --help``."""

    file: Path
    config: str | None
    shapes: tuple[str, ...] = ()
    rewriting: RewriteRequest
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[str, ...] = ()
    backend: str
    engine: str | None
    wave: Path | None
    serial: bool
    order: str
    no_check: bool
    report: str | None
    timeline: str | None
    trace: str | None
    save: Path | None
    advise: bool
    energy: bool
    seed: int
    settings: tuple[str, ...]
    max_cycles: int
    max_uops: int
    as_json: bool

    @property
    def is_model(self) -> bool:
        return is_model(self.file) or self.is_digits

    @property
    def is_digits(self) -> bool:
        return self.file == DIGITS and not self.file.exists()

    @cached_property
    def overrides(self) -> dict[str, str]:
        return parse_settings(self.settings) | ({"serial": "1"} if self.serial else {})

    @property
    def run_options(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "engine": self.engine,
            "wave": self.wave,
            "max_cycles": self.max_cycles,
            "max_uops": self.max_uops,
        }

    def machine_row(self, config: Config) -> tuple[str, str]:
        """The machine of a compiled network is no default of this command."""
        return machine_row(config) if self.is_model else ("machine", str(config))

    def check(self) -> None:
        """Raise an AccelError for options that exclude one another."""
        if self.serial and self.backend == "functional":
            raise AccelError(
                "--serial is given with the backend 'functional', which has no time; sim and rtl do"
            )
        if self.save is not None:
            from accel.views.saved_run import check_run_path  # slow to import

            check_run_path(self.save)
        for option, value in {"--save": self.save, "--advise": self.advise}.items():
            if value and self.backend == UNTIMED:
                raise AccelError(
                    f"{option} is given with the backend {self.backend!r}, which has no time; sim and rtl do"
                )
        if not self.is_model:
            reason = f"{str(self.file)!r} is already compiled; it is for models"
            if self.config is not None:
                raise AccelError(f"--config is given, and {reason}")
            self.rewriting.check_unused(reason)


def fault_figures(config: Config, error: ProgramFault) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "config": config.label, "error": error_dict(error)}

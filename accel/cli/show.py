from pathlib import Path

from accel.base.errors import AccelError
from accel.base.run_choices import NETWORK_STAGES
from accel.cli.compile_network import show_network
from accel.cli.shared_options import load_program
from accel.cli.stdout import write
from accel.image.image import is_network
from accel.run.stage_listing import stage_text


def show(file: Path, stage: str | None) -> None:
    if is_network(file):
        write(show_network(file, stage or "placed"))
        return
    if stage in NETWORK_STAGES:
        raise AccelError(f"stage {stage!r} is one of networks, and {str(file)!r} holds none")
    write(stage_text(load_program(file), stage or "tensorized"))

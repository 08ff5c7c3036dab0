from pathlib import Path
from typing import Any

from accel.base.errors import AccelError
from accel.cli.shared_options import load_program
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.deployment.c_identifiers import identifier
from accel.deployment.deployment_plan import deploy_network, deploy_program, example_run
from accel.deployment.deployment_steps import Deployment
from accel.deployment.package_folder import check_folder, write_package
from accel.image.image import is_network
from accel.network.network_file import load_network
from accel.network.network_program import NetworkProgram
from accel.run.result import SCHEMA_VERSION


def package(
    file: Path,
    output: Path,
    name: str | None,
    embed: bool,
    example: bool,
    cut: bool,
    force: bool,
    as_json: bool,
) -> None:
    called = _name(file if name is None else Path(name))
    check_folder(output, force=force)
    network = is_network(file)
    if cut and not network:
        raise AccelError(f"--cut is given, and {str(file)!r} holds a single program; it is for networks")
    with busy("packaging"):
        program = load_network(file) if network else load_program(file)
        if isinstance(program, NetworkProgram):
            deployment = deploy_network(program, called, cut=cut)
        else:
            deployment = deploy_program(program, called)
        run = example_run(program) if example else None
        files = write_package(deployment, output, embed=embed, example=run, force=force)
    if as_json:
        print_json(_figures(deployment, output, files))
        return
    show(FiguresTable(_rows(deployment, files)))
    wrote(output)


def _name(path: Path) -> str:
    """Raise an AccelError for a name of the driver."""
    found = identifier(path.stem)
    if found == "accel" or found.startswith("accel_"):
        raise AccelError(f"the package's name is {found!r}; names with 'accel' are the driver's, give --name")
    return found


def _figures(deployment: Deployment, output: Path, files: dict[str, bytes]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "output": str(output),
        "name": deployment.name,
        "config": deployment.config.label,
        "files": {name: len(data) for name, data in files.items()},
        "streams": len(deployment.streams),
        "instructions": sum(len(stream.image.instructions) for stream in deployment.streams),
        "cycles": sum(stream.cycles for stream in deployment.streams),
        "memory_bytes": deployment.memory_bytes,
        "workspace_bytes": deployment.workspace_bytes,
        "inputs": [one.name for one in deployment.inputs],
        "outputs": [one.name for one in deployment.outputs],
        "left_out": [name for name, _ in deployment.left_out],
    }


def _rows(deployment: Deployment, files: dict[str, bytes]) -> list[tuple[str, str]]:
    figures = _figures(deployment, Path(), files)
    held = sum(len(data) for name, data in files.items() if name.endswith(".bin"))
    rows = [
        ("machine", str(deployment.config)),
        ("streams", f"{figures['streams']} of {figures['instructions']:,} instructions"),
        ("cycles", f"{figures['cycles']:,}"),
        ("memory", f"{deployment.memory_bytes:,} bytes, {held:,} of them from files"),
        ("workspace", f"{deployment.workspace_bytes:,} bytes"),
    ]
    for role in ("inputs", "outputs"):
        tensors = getattr(deployment, role)
        rows.append((role, ", ".join(f"{one.name} {one.dtype}{list(one.shape)}" for one in tensors)))
    if deployment.left_out:
        rows.append(("left out", "; ".join(f"{name}: {reason}" for name, reason in deployment.left_out)))
    return rows

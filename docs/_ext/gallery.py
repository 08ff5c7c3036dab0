"""The gallery: runs as reports, made anew by the commands that stand beside them."""

import contextlib
import io
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sphinx.application import Sphinx

from accel.cli.app import app as commands

ROOT = Path(__file__).parents[2]
FOLDER = "gallery"
"""Of the reports and charts, below the pages."""


class Run(NamedTuple):
    """A page and the commands that make it.

    Attributes:
        name: of its files.
        heading, text: of it, and what to look at.
        commands: ``{out}`` is the page, ``{root}`` the checkout.
        picture: beside the documents, of a page that has no chart of its own; empty for that of the last run.
    """

    name: str
    heading: str
    text: str
    commands: tuple[str, ...]
    picture: str = ""


_GEMM = "accel compile gemm -m 128 -n 128 -k 128 --shift 8 --config gemm8x8 -o gemm.accel"
_CONV = "accel compile conv2d --ic 64 --oc 64 --size 28 --kernel 3 --padding 1 --bias --shift 8 --relu"
RUNS = (
    Run(
        "gemm",
        "A matrix product",
        "Two virtual threads: while one is computed on, the other is loaded. The core is busy most "
        "of the time "
        "once the first operands are there.",
        (_GEMM, "accel run gemm.accel --report {out}"),
    ),
    Run(
        "serial",
        "The same, one instruction after another",
        "The same program on the same machine, without decoupling: nobody works while another does.",
        (_GEMM, "accel run gemm.accel --serial --report {out}"),
    ),
    Run(
        "latency",
        "The same, with memory far away",
        "A thousand cycles to the first beat of a burst are more than two threads can hide; the "
        "critical path "
        "leads through the bus.",
        (_GEMM, "accel run gemm.accel --set read_latency=1000 --report {out}"),
    ),
    Run(
        "conv",
        "A convolution",
        "A layer of 64 channels on VTA's stock geometry. Zeros around the picture are padded by the LOADs.",
        (f"{_CONV} --config vta -o conv.accel", "accel run conv.accel --report {out}"),
    ),
    Run(
        "finished",
        "The same, finished by the store unit",
        "On a machine of the second generation the store unit adds the bias and requantizes, which "
        "on the other "
        "one takes the compute unit's time.",
        (
            "accel compile conv2d --ic 64 --oc 64 --size 28 --kernel 3 --padding 1 --bias --scale 0.004 "
            "--config vta-int8 -o conv.accel",
            "accel run conv.accel --report {out}",
        ),
    ),
    Run(
        "pool",
        "A pooling layer",
        "Nothing is multiplied: the ALU takes maxima, a value of each channel in a cycle.",
        (
            "accel compile max-pool2d --channels 64 --size 28 --kernel 2 --stride 2 "
            "--config vta -o pool.accel",
            "accel run pool.accel --report {out}",
        ),
    ),
    Run(
        "diff",
        "Two runs beside each other",
        "A larger product, and the same with memory far away: each unit of both on one scale, and the "
        "causes that make the difference.",
        (
            "accel compile gemm -m 256 -n 256 -k 256 --shift 8 --config gemm8x8 -o gemm.accel",
            "accel run gemm.accel --save near.accelrun",
            "accel run gemm.accel --set read_latency=400 --save far.accelrun",
            "accel diff near.accelrun far.accelrun --html {out}",
        ),
        picture="looking/diff.png",
    ),
    Run(
        "network",
        "A network",
        "The network of :doc:`digits`, layer by layer: when each ran, what its cycles went to, how close to "
        "its roofline it came, which tensor lay where, and what fusion saves.",
        (
            "accel compile onnx {root}accel/network/digits/digits.onnx -o digits.accel",
            "accel run digits.accel --report {out}",
        ),
    ),
)


def carry_out(words: list[str]) -> None:
    """A command, as the shell would."""
    assert words[0] == "accel"
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        commands.make_context("accel", words[1:], obj=tuple(words[1:])) as context,
    ):
        assert commands.invoke(context) == 0, words


def make(target: Path) -> None:
    """Write the reports, and their charts as pictures, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for run in RUNS:
                lines = [shlex.split(line.format(out="run.html", root=f"{ROOT}/")) for line in run.commands]
                if not run.picture:
                    lines.append([*lines[-1][:-2], "--timeline", "run.svg"])
                for line in lines:
                    carry_out(line)
                for suffix in (".html",) if run.picture else (".html", ".svg"):
                    Path(f"run{suffix}").replace(target / f"{run.name}{suffix}")
        finally:
            os.chdir(before)


def page() -> Iterator[str]:
    """The lines of the page."""
    yield from ("Gallery", "=======", "")
    yield "Runs as reports, each with the commands that make it. A picture leads to its report, in which"
    yield "everything can be pointed at, searched and measured; :doc:`looking` explains what is in it."
    for run in RUNS:
        yield from ("", run.heading, "-" * len(run.heading), "", run.text, "", ".. code-block:: text", "")
        yield from (f"   {line.format(out=f'{run.name}.html', root='')}" for line in run.commands)
        if run.picture:
            yield from ("", f".. image:: {run.picture}", f"   :target: {FOLDER}/{run.name}.html", "")
            continue
        yield from ("", ".. raw:: html", "")
        yield f'   <p><a href="{FOLDER}/{run.name}.html">'
        yield f'   <img src="{FOLDER}/{run.name}.svg" alt="{run.heading}"></a></p>'
        yield ""


def write(app: Sphinx) -> None:
    """Write the page, if it is not as it should be already, and what it leads to."""
    target, content = Path(app.srcdir, "gallery.rst"), "".join(f"{line}\n" for line in page())
    if not target.exists() or target.read_text(encoding="utf-8") != content:
        target.write_text(content, encoding="utf-8")
    if app.builder.format == "html":
        make(Path(app.outdir, FOLDER))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}

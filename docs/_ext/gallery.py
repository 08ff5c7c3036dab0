"""Write the gallery: reports of runs, made by the commands that the page shows."""

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
"""Folder of the reports and charts, relative to the pages."""


class Run(NamedTuple):
    """A page and the commands that make it.

    Attributes:
        name: base name of its files.
        heading, text: heading of the entry, and text about the things to look at.
        commands: command lines, where ``{out}`` is the page and ``{root}`` the checkout.
        picture: path of a picture in the documents, or empty for a chart of the last run.
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
        "Two virtual threads: while the compute unit works on one, the load unit loads the other. Once the "
        "first operands have arrived, the GEMM core is busy most of the time.",
        (_GEMM, "accel run gemm.accel --report {out}"),
    ),
    Run(
        "serial",
        "The same, one instruction after another",
        "The same program on the same machine without decoupling: the units never work in parallel.",
        (_GEMM, "accel run gemm.accel --serial --report {out}"),
    ),
    Run(
        "latency",
        "The same, with a high read latency",
        "Two threads cannot hide 1,000 cycles between a request and the first beat of its burst, so the "
        "critical path leads through the bus.",
        (_GEMM, "accel run gemm.accel --set read_latency=1000 --report {out}"),
    ),
    Run(
        "conv",
        "A convolution",
        "A layer of 64 channels on VTA's stock geometry. The LOADs write the zeros around the picture.",
        (f"{_CONV} --config vta -o conv.accel", "accel run conv.accel --report {out}"),
    ),
    Run(
        "finished",
        "The same, with the epilogue in the store unit",
        "On ``vta-int8`` the store unit adds the bias and requantizes. On ``vta`` the compute unit spends "
        "cycles on that.",
        (
            "accel compile conv2d --ic 64 --oc 64 --size 28 --kernel 3 --padding 1 --bias --scale 0.004 "
            "--config vta-int8 -o conv.accel",
            "accel run conv.accel --report {out}",
        ),
    ),
    Run(
        "pool",
        "A pooling layer",
        "No products: the ALU computes maxima, one value of each channel per cycle.",
        (
            "accel compile max-pool2d --channels 64 --size 28 --kernel 2 --stride 2 "
            "--config vta -o pool.accel",
            "accel run pool.accel --report {out}",
        ),
    ),
    Run(
        "diff",
        "Two runs compared",
        "A larger product, and the same with a high read latency: each unit of both runs on one scale, and "
        "the causes of the difference.",
        (
            "accel compile gemm -m 256 -n 256 -k 256 --shift 8 --config gemm8x8 -o gemm.accel",
            "accel run gemm.accel --save near.accelrun",
            "accel run gemm.accel --set read_latency=400 --save far.accelrun",
            "accel diff near.accelrun far.accelrun --html {out}",
        ),
        picture="how-to/looking/diff.png",
    ),
    Run(
        "network",
        "A network",
        "The network of :doc:`learn/digits`, layer by layer: when each ran, the causes of its cycles, how "
        "close it came to its roofline, where each tensor lay, and the savings of fusion.",
        (
            "accel compile onnx {root}accel/network/digits/digits.onnx -o digits.accel",
            "accel run digits.accel --report {out}",
        ),
    ),
)


def carry_out(words: list[str]) -> None:
    assert words[0] == "accel"
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        commands.make_context("accel", words[1:], obj=tuple(words[1:])) as context,
    ):
        assert commands.invoke(context) == 0, words


def make(target: Path) -> None:
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
    yield from ("Gallery", "=======", "")
    yield "Reports of runs, each with the commands that make it. A picture links to its interactive report."
    yield ":doc:`how-to/look-into-a-run` explains how to read one."
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
    target, content = Path(app.srcdir, "gallery.rst"), "".join(f"{line}\n" for line in page())
    if not target.exists() or target.read_text(encoding="utf-8") != content:
        target.write_text(content, encoding="utf-8")
    if app.builder.format == "html":
        make(Path(app.outdir, FOLDER))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}

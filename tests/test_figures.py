"""Figures that documents tell are those that are measured."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accel
from accel.benchmarks import Task, default_epilogue, layers_of
from accel.core.config import NAMED
from accel.hw.board.block_ram_memory import READ_LATENCY, WRITE_LATENCY
from accel.network.digits import INPUT, as_images, digits_network, digits_pictures
from accel.proof import certificate_checker
from accel.proof.certificate import certificate, write_certificate
from accel.run.machine_advice import advise

ROOT = Path(__file__).parents[1]
PAGES = [
    pytest.param(network, config, id=f"{network}-{config}", marks=() if first else pytest.mark.thorough)
    for network, config, first in (
        ("resnet18", "vta", True),
        ("resnet18", "vta-int8", False),
        ("mobilenet", "vta", False),
        ("mobilenet", "vta-int8", False),
        ("gemm", "vta", False),
        ("gemm", "vta-int8", False),
    )
]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def layers(network: str, config: str) -> dict[str, tuple[int, int]]:
    """How often a network has each layer, and its cycles, by the page about it; of ``total``, too."""
    text = page(f"docs/reference/networks/{network}{'-int8' if config.endswith('-int8') else ''}.md")
    rows = [line.strip("| ").split(" | ") for line in text.partition("\n## ")[0].splitlines() if "|" in line]
    times, cycles = rows[0].index("times"), rows[0].index("cycles")
    return {row[0]: (int(row[times]), number(row[cycles])) for row in rows[2:]}


@pytest.mark.parametrize(("network", "config"), PAGES)
def test_layers_of_networks(network: str, config: str) -> None:
    told = layers(network, config)
    machine = NAMED[config]
    found = {}
    for layer in layers_of(network, default_epilogue(machine)):
        result = Task(layer=layer, config=machine).build().run(check=False)
        found[layer.name] = (layer.repeats, result.cycles)
    found["total"] = (
        sum(times for times, _ in found.values()),
        sum(times * cycles for times, cycles in found.values()),
    )
    assert found == told


def test_totals_of_networks() -> None:
    """The README and the page about networks have those of the tables."""
    total = {
        (network, config): layers(network, config)["total"][1]
        for network in ("resnet18", "mobilenet")
        for config in ("vta", "vta-int8")
    }
    readme = re.search(
        r"takes ([\d,]+) cycles on the machine `vta`.* with a scale for each channel, it takes ([\d,]+)"
        r" cycles\."
        r" MobileNet-v1 takes ([\d,]+) cycles there",
        page("README.md").replace("\n", " "),
    )
    assert readme
    assert [number(one) for one in readme.groups()] == [
        total["resnet18", "vta"],
        total["resnet18", "vta-int8"],
        total["mobilenet", "vta-int8"],
    ]
    networks = page("docs/reference/networks.md")
    told = re.search(r"MobileNet-v1 takes ([\d,]+) cycles on `vta` and ([\d,]+) on `vta-int8`", networks)
    assert told
    assert [number(one) for one in told.groups()] == [
        total["mobilenet", "vta"],
        total["mobilenet", "vta-int8"],
    ]
    compared = re.search(
        r"programs of\s+these pages: ([\d,]+) cycles on `vta` and ([\d,]+) on `vta-int8`", networks
    )
    assert compared
    assert [number(one) for one in compared.groups()] == [
        sum(
            cycles
            for network in ("resnet18", "mobilenet")
            for name, (_, cycles) in layers(network, config).items()
            if name != "total"
        )
        for config in ("vta", "vta-int8")
    ]


def test_digits_on_a_board() -> None:
    """The simulator's cycles, which the board's are equal to."""
    program = digits_network().build("ecp5-int8")
    program = program.with_timing({"read_latency": READ_LATENCY, "write_latency": WRITE_LATENCY})
    cycles = program.run({INPUT: as_images(digits_pictures()[0][:1])}, check=False).cycles
    assert f"cycles     {cycles:,}\nsimulator  {cycles:,}\n" in page("docs/how-to/put-it-on-an-fpga.md")


def test_what_the_checker_of_certificates_says(tmp_path: Path) -> None:
    text = page("docs/explain/verification.md")
    command = "accel compile gemm -m 256 -n 256 -k 256 --bias --relu --shift 10 -o gemm.accel\n"
    assert command in text
    assert command in page("README.md")
    program = accel.build(accel.gemm(256, 256, 256, bias=True, relu=True, shift=10), "gemm8x8")
    program.save(tmp_path / "gemm.accel")
    write_certificate(tmp_path / "gemm.proof.json", certificate(program))
    done = subprocess.run(
        [sys.executable, certificate_checker.__file__, "gemm.proof.json", "gemm.accel"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"`{done.stdout.splitlines()[0]}`" in text


def test_utilization_of_matrix_products() -> None:
    """Two virtual threads, by epilogue, in docs/reference/performance.md: at most 0.3 % below the bound."""
    machine = accel.machine("gemm8x8")
    for epilogue, options in {"none": {}, "shift, saturation": {"shift": 12}}.items():
        row = re.search(
            rf"^\| {epilogue} \| ([\d.]+) \|.*\| ([\d.]+) \| [\d.]+ \|$",
            page("docs/reference/performance.md"),
            re.M,
        )
        assert row
        run = accel.build(accel.gemm(1024, 1024, 1024, **options), machine, vthreads=2).run(check=False)
        assert f"{run.utilization:.3f}" == row[2]
        assert (run.utilization or 0) > 0.997 * float(row[1])


@pytest.mark.thorough
def test_threads_of_a_schedule() -> None:
    """The four runs of the table in docs/explain/latency-hiding.md."""
    rows = re.findall(
        r"^\| (?:serial|\w+ threads?) \| ([\d,]+) \| ([\d.]+) % \|$",
        page("docs/explain/latency-hiding.md"),
        re.M,
    )
    assert len(rows) == 4
    workload = accel.gemm(512, 512, 512, shift=10)
    steps = accel.build(workload, "gemm8x8", vthreads=4).schedule().steps
    programs = {
        threads: accel.build(workload, "gemm8x8", steps=steps, vthreads=threads) for threads in (1, 2, 4)
    }
    runs = [programs[1].run(serial=1), *(one.run() for one in programs.values())]
    assert [(f"{run.cycles:,}", f"{100 * (run.utilization or 0):.1f}") for run in runs] == rows


def test_the_product_that_engines_are_measured_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    program = importlib.import_module("engines").layer()
    told = re.search(r"on `vta`, ([\d,]+) cycles, without waves", page("docs/explain/hardware.md"))
    assert told
    assert program.run(check=False).cycles == number(told[1])


def test_advice() -> None:
    text = page("docs/how-to/why-is-my-layer-slow.md")
    block = text[text.index("change           why") :].partition("```")[0]
    config = accel.machine(
        "gemm8x8", inp_bytes="4KiB", wgt_bytes="4KiB", acc_bytes="4KiB", bus_bits=64
    ).config
    result = accel.build(accel.gemm(128, 128, 128, shift=8), config).run()
    found = [(one.change, one.reason, one.price, f"{one.cycles:,}") for one in advise(result).advice]
    assert [tuple(re.split(r"  +", line)[:4]) for line in block.splitlines()[1:]] == found
    assert f"the product above, {result.cycles:,} cycles" in text

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from accel.graph.graph import Graph
from accel.graph.movement_operators import Concat
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from accel.network.network_program import NetworkProgram
from accel.network.network_text import network_text
from accel.network.partition_stages import Kind, Read, bundle_numbers, earliest_stages, programs_of
from tests.network.networks import MACHINE, Small


@st.composite
def constraints(draw: st.DrawFn, count: int) -> tuple[list[Kind], list[list[Read]], list[int]]:
    kinds: list[Kind] = [draw(st.sampled_from(("machine", "host", "either"))) for _ in range(count)]
    reads = [
        [
            Read(producer=producer, repacks=draw(st.booleans()))
            for producer in range(at)
            if draw(st.booleans())
        ]
        for at in range(count)
    ]
    joined = draw(st.lists(st.sets(st.integers(0, count - 1), min_size=2, max_size=3), max_size=1))
    is_possible = all(kinds[at] != "host" for members in joined for at in members)
    return kinds, reads, bundle_numbers(count, [sorted(one) for one in joined] if is_possible else [])


def is_order(
    stages: Sequence[int], kinds: Sequence[Kind], reads: Sequence[Sequence[Read]], bundles: Sequence[int]
) -> bool:
    """Whether stages keep all constraints, said without the order of the parts."""
    for at, stage in enumerate(stages):
        wanted = "machine" if bundles[at] >= 0 else kinds[at]
        if wanted != "either" and (stage % 2 == 1) != (wanted == "machine"):
            return False
        for read in reads[at]:
            before = stages[read.producer]
            if stage < before or (stage == before and read.repacks and stage % 2):
                return False
    numbers = {(bundle, stage) for bundle, stage in zip(bundles, stages, strict=True) if bundle >= 0}
    return len(numbers) == len({bundle for bundle, _ in numbers})


@given(constraints(4))
def test_no_order_has_fewer_programs(found: tuple[list[Kind], list[list[Read]], list[int]]) -> None:
    kinds, reads, bundles = found
    last = 2 * len(kinds) - 1
    possible = [one for one in product(range(last + 1), repeat=4) if is_order(one, kinds, reads, bundles)]
    stages = earliest_stages(kinds, reads, bundles, last + 1)
    if not possible:
        assert stages is None
        return
    assert stages is not None
    assert is_order(stages, kinds, reads, bundles)
    assert programs_of(stages) == min(map(programs_of, possible))


def built(graph: Graph) -> NetworkProgram:
    program = Network(graph=graph).build(MACHINE)
    program.run(backend="functional").raise_if_wrong()
    return program


def test_layers_wait_for_a_host_node_that_others_need() -> None:
    """One program computes both convolutions, although the first of them could run before the host."""
    small = Small((1, 16, 6, 6))
    small.conv("x", "early", 16)
    small.sigmoid("x", "t")
    small.conv("t", "late", 16)
    program = built(small.graph("early", "late"))
    assert len(program.chains) == 1
    assert program.partition is not None
    assert (program.partition.bound, program.partition.is_exact) == (1, True)


def test_paths_that_alternate_bound_the_programs(tmp_path: Path) -> None:
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 16, pad=1)
    small.conv(small.sigmoid("a", "t"), "b", 16, pad=1)
    small.conv(small.sigmoid("x", "s"), "c", 16, pad=1)
    small.conv(small.sigmoid("c", "u"), "d", 16, pad=1)
    small.add("b", "d", "y")
    program = built(small.graph("y"))
    assert len(program.chains) == 2
    assert program.partition is not None
    assert program.partition.bound == 2
    assert f"programs: 2; {program.partition.describe()}" in network_text(program, "placed")
    save_network(program, tmp_path / "net.accel")
    assert load_network(tmp_path / "net.accel").partition == program.partition


def test_a_layer_waits_to_be_in_the_program_of_its_concat() -> None:
    """The first convolution is in the second program, next to the operand that the host delays."""
    small = Small((1, 16, 6, 6))
    small.zero_out = 3
    small.conv("x", "a", 16, pad=1)
    small.conv("x", "before", 16, pad=1)
    small.conv(small.sigmoid("before", "t"), "b", 16, pad=1)
    small.builder.emit(Concat(axis=1), ["a", "b"], "ab")
    small.conv("ab", "y", 16, 1)
    program = built(small.graph("y"))
    assert [[part.fused.output for part in chain.layers] for chain in program.chains] == [
        ["before"],
        ["a", "b", "y"],
    ]


def test_concat_of_two_programs_is_copied_by_the_host() -> None:
    small = Small((1, 16, 6, 6))
    small.zero_out = 3
    small.conv("x", "a", 16, pad=1)
    small.conv(small.sigmoid("a", "t"), "b", 16, pad=1)
    small.builder.emit(Concat(axis=1), ["a", "b"], "ab")
    small.conv("ab", "c", 16, 1)
    small.conv("c", "y", 16, 1)
    program = built(small.graph("y"))
    assert len(program.chains) == 3
    assert program.partition is not None
    assert program.partition.bound == 2
    assert program.partition.is_exact

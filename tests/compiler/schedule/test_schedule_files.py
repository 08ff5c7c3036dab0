"""Schedules as files and as data: saved steps load again, and invalid ones are refused."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import accel
from accel.base.errors import AccelError, ProgramError, ProgramFault, ScheduleError
from accel.compiler.schedule.schedule import Step
from accel.compiler.schedule.schedule_files import load_steps, rethreaded, save_steps, scheduled
from tests.expect import refused
from tests.strategies import examples

WORKLOAD = accel.gemm(20, 24, 20, shift=5, bias=True)
TINY = accel.machine("tiny")


def recorded(threads: int) -> list[Step]:
    return accel.build(WORKLOAD, TINY, vthreads=threads).schedule().steps


STEPS = {threads: recorded(threads) for threads in (1, 2, 4)}


# --- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["s.toml", "s.json", "schedule"])
@pytest.mark.parametrize("threads", STEPS)
def test_saved_steps_are_loaded(threads: int, name: str, tmp_path: Path) -> None:
    save_steps(tmp_path / name, STEPS[threads])
    assert without_none(load_steps(tmp_path / name)) == without_none(STEPS[threads])


def without_none(steps: list[Step]) -> list[Step]:
    """TOML has no null. A missing key has the same meaning."""
    return [{key: value for key, value in step.items() if value is not None} for step in steps]


def test_the_text_is_for_people(tmp_path: Path) -> None:
    steps: list[Step] = [{"op": "split", "stage": "C", "axis": "y", "factor": 8, "names": ["yo", "yi"]}]
    save_steps(tmp_path / "s.toml", steps)
    assert (tmp_path / "s.toml").read_text() == (
        'format = "accel-schedule"\nversion = 1\n\n'
        '[[steps]]\nop = "split"\nstage = "C"\naxis = "y"\nfactor = 8\nnames = ["yo", "yi"]\n'
    )
    save_steps(tmp_path / "s.json", steps)
    assert (tmp_path / "s.json").read_text() == (
        '{"format": "accel-schedule", "version": 1, "steps": [\n'
        '  {"op": "split", "stage": "C", "axis": "y", "factor": 8, "names": ["yo", "yi"]}\n]}\n'
    )


@examples(200)
@given(noise=st.binary(max_size=300), ending=st.sampled_from([".toml", ".json"]))
def test_noise_is_no_schedule(tmp_path_factory: pytest.TempPathFactory, noise: bytes, ending: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"noise{ending}"
    path.write_bytes(noise)
    with pytest.raises(ProgramError, match="schedule"):
        load_steps(path)


# --- steps as data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", STEPS)
def test_steps_make_the_program_again(threads: int) -> None:
    again = accel.build(WORKLOAD, TINY, steps=STEPS[threads])
    first = accel.build(WORKLOAD, TINY, vthreads=threads)
    assert (again.code, again.segments, again.source) == (first.code, first.segments, first.source)


def test_another_number_of_threads() -> None:
    two, four = (scheduled(WORKLOAD, TINY, STEPS[threads]) for threads in (2, 4))
    (bound,) = {(step["stage"], step["axis"]) for step in four.steps if step["op"] == "bind"}
    splits = [n for n, step in enumerate(four.steps) if step["op"] == "split"]
    (place,) = (n for n in splits if (four.steps[n]["stage"], four.steps[n]["names"][1]) == bound)
    again = rethreaded(four, TINY, 3).steps
    assert again == [*four.steps[:place], {**four.steps[place], "factor": 3}, *four.steps[place + 1 :]]
    message = "5 virtual threads are too many for these tiles; there is work for 4"
    with refused(ScheduleError, message):
        rethreaded(two, TINY, 5)
    for threads in (1, 2):
        program = accel.build(four, TINY, vthreads=threads)
        assert program.run().mismatches == 0
        found = [step["factor"] for step in program.schedule().steps if step["op"] == "split"]
        assert threads in found


def test_threads_need_a_loop_that_is_bound() -> None:
    message = (
        "the schedule binds {} to virtual threads; their number can be set only if the bound loop is "
        "the inner loop of a split"
    )
    with refused(ScheduleError, message.format("no loop")):
        accel.build(WORKLOAD, TINY, steps=STEPS[1], vthreads=2)
    s = scheduled(WORKLOAD, TINY, STEPS[1])
    s["C"].bind("yo", accel.te.thread_axis("vthread"))
    with refused(ScheduleError, message.format("yo of C")):
        rethreaded(s, TINY, 2)


def test_steps_go_with_a_workload() -> None:
    schedule = scheduled(WORKLOAD, TINY, STEPS[1])
    with refused(ScheduleError, "steps are given with a schedule; only a workload takes it"):
        accel.build(schedule, TINY, steps=STEPS[1])
    with refused(ScheduleError, "a tile is given with a schedule; only a workload takes it"):
        accel.build(schedule, TINY, tile={"tile_m": 4})
    with refused(
        ScheduleError, "a tile and steps are given, and the steps contain the tile; give one of them"
    ):
        accel.build(WORKLOAD, TINY, steps=STEPS[1], tile={"tile_m": 4})


def test_tiles_may_be_named() -> None:
    s = accel.te.create_schedule(WORKLOAD.output)
    yo, xo, yi, xi = s["C"].tile("y", "x", 4, 8, names=["a", "b", "c", "d"])
    assert [v.name for v in (yo, xo, yi, xi)] == ["a", "b", "c", "d"]
    again = accel.te.create_schedule(WORKLOAD.output)
    with refused(ScheduleError, "tile of C is given 3 names; it makes 4 loops"):
        again["C"].tile("y", "x", 4, 8, names=["a", "b", "c"])
    assert scheduled(WORKLOAD, TINY, s.steps)["C"].leaves[0].name == "a"


# --- edited steps ----------------------------------------------------------------------------------


NAMES = sorted({str(v) for steps in STEPS.values() for step in steps for v in step.values()})
VALUES = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(["y", "x", "k", "yo", "xo", "yi", "xi", "S", "C", "CL", "A", "AL", "BL", "biasL"]),
    st.integers(-1, 40),
    st.sampled_from([None, True, 1.5, "", [], {}, ["y"], ["y", "x"], [8, 8], 10**30, [None]]),
)


@st.composite
def edited(draw: st.DrawFn) -> list[Step]:
    """Draw the steps of a schedule with one or two random edits."""
    steps: list[Any] = copy.deepcopy(draw(st.sampled_from(list(STEPS.values()))))
    for _ in range(draw(st.integers(1, 2))):
        number = draw(st.integers(0, len(steps) - 1))
        kind = draw(st.sampled_from(["drop", "double", "swap", "key", "value", "value", "factor", "factor"]))
        step = steps[number]
        if kind == "drop":
            del steps[number]
        elif kind == "double":
            steps.insert(draw(st.integers(0, len(steps))), copy.deepcopy(step))
        elif kind == "swap":
            other = draw(st.integers(0, len(steps) - 1))
            steps[number], steps[other] = steps[other], steps[number]
        elif kind == "key":
            step.pop(draw(st.sampled_from(sorted(step))), None)
        elif kind == "value":
            step[draw(st.sampled_from(sorted(step)))] = draw(VALUES)
        else:
            for key in ("factor", "factors"):
                if key in step:
                    size = draw(st.integers(1, 30))
                    step[key] = size if key == "factor" else [size] * len(step[key])
    return steps


@examples(250)
@given(edited())
def test_an_edited_schedule_gives_the_same_result_or_is_refused(steps: list[Step]) -> None:
    """There is never a wrong result, a race or an internal error."""
    try:
        program = accel.build(WORKLOAD, TINY, steps=steps)
    except ProgramFault:
        raise
    except AccelError:
        event("refused")
        return
    event("compiled")
    assert program.run(backend="functional").mismatches == 0

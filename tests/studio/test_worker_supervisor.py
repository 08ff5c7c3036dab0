"""Worker processes: newer questions, and limits."""

import json
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from accel.base.errors import AccelError
from accel.studio.worker_supervisor import Superseded, WorkerSupervisor

_WORKER = """
import sys, time
print("ready", flush=True)
for line in sys.stdin:
    time.sleep(float(line))
    print(line.strip(), flush=True)
"""
"""Reads a number of seconds, sleeps, and prints the number."""


@pytest.fixture
def sleepers() -> Iterator[WorkerSupervisor]:
    with WorkerSupervisor(seconds=60, command=(sys.executable, "-S", "-c", _WORKER)) as found:
        yield found


def test_the_worker_answers(workers: WorkerSupervisor) -> None:
    state = {"workload": "gemm", "parameters": {"M": 8, "N": 8, "K": 8}, "machine": "tiny"}
    question = {"ask": "view", "state": state, "files": {}}
    assert json.loads(workers.ask(json.dumps(question).encode()))["view"]["figures"]["cycles"] > 0
    question["state"] = {**state, "machine": "nobody"}
    assert "is not a machine" in json.loads(workers.ask(json.dumps(question).encode()))["error"]["message"]


def test_a_newer_question_ends_older_ones(sleepers: WorkerSupervisor) -> None:
    ended: list[type] = []

    def older() -> None:
        try:
            sleepers.ask(b"60")
        except Superseded as error:
            ended.append(type(error))

    threads = [threading.Thread(target=older) for _ in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    assert sleepers.ask(b"0") == b"0\n"
    for thread in threads:
        thread.join()
    assert ended == [Superseded] * 3


def test_killed_processes_are_replaced(sleepers: WorkerSupervisor) -> None:
    assert sleepers.ask(b"0") == b"0\n"
    for one in (sleepers._current, sleepers._spare):
        one._process.kill()
        one._process.wait()
    assert sleepers.ask(b"0") == b"0\n"


def test_answers_that_take_too_long_are_abandoned(
    sleepers: WorkerSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleepers, "_seconds", 0.1)
    with pytest.raises(AccelError, match=r"longer than 0\.1 seconds and was abandoned"):
        sleepers.ask(b"60")
    monkeypatch.setattr(sleepers, "_seconds", 60)
    assert sleepers.ask(b"0") == b"0\n"


def test_a_process_that_dies_is_replaced(sleepers: WorkerSupervisor) -> None:
    with pytest.raises(AccelError, match="died"):
        sleepers.ask(b"no number")
    assert sleepers.ask(b"0") == b"0\n"

"""Work in another process: newer questions, and limits."""

import json
import threading
import time
from typing import Any

import pytest

from accel.base.errors import AccelError
from accel.studio.workshop import Superseded, Workshop

QUICK = {"workload": "gemm", "parameters": {"M": 8, "N": 8, "K": 8}, "machine": "tiny"}
LONG = {"workload": "gemm", "parameters": {"M": 1024, "N": 2048, "K": 512}, "machine": "tiny"}


def ask(workshop: Workshop, state: Any) -> Any:
    return json.loads(workshop.ask(json.dumps({"ask": "view", "state": state, "files": {}}).encode()))


def test_questions_are_answered(workshop: Workshop) -> None:
    assert ask(workshop, QUICK)["view"]["figures"]["cycles"] > 0
    assert "is no machine" in ask(workshop, {**QUICK, "machine": "nobody"})["error"]["message"]


def test_a_newer_question_ends_an_older_one(workshop: Workshop) -> None:
    ask(workshop, QUICK)
    ended: list[type] = []

    def older() -> None:
        try:
            ask(workshop, LONG)
        except Superseded as error:
            ended.append(type(error))

    threads = [threading.Thread(target=older) for _ in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    assert "view" in ask(workshop, QUICK)
    for thread in threads:
        thread.join()
    assert ended == [Superseded] * 3


def test_what_takes_too_long_is_given_up(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(workshop, QUICK)
    monkeypatch.setattr(workshop, "_seconds", 0.3)
    with pytest.raises(AccelError, match=r"longer than 0\.3 seconds, and was given up"):
        ask(workshop, LONG)
    monkeypatch.setattr(workshop, "_seconds", 60)
    assert "view" in ask(workshop, QUICK)


def test_a_process_that_dies_is_replaced(workshop: Workshop) -> None:
    ask(workshop, QUICK)
    workshop._current._process.kill()
    with pytest.raises(AccelError, match="died"):
        ask(workshop, QUICK)
    assert "view" in ask(workshop, QUICK)

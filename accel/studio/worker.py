"""The process that makes views: a line of JSON in, a line out. It can be killed at any time.

Whatever it prints otherwise goes to standard error.
"""

import json
import os
import sys
from typing import Any

from accel.base.errors import AccelError
from accel.studio.state import State
from accel.studio.view import Views, error_of


def answer(views: Views, text: str) -> str:
    """The view of a state, or the error, as a line of JSON.

    Args:
        views: makes them.
        text: JSON with what is asked for, ``view`` or ``advice``, the ``state``, as a page has sent it, and
            the paths of ``files`` by name.
    """
    found: dict[str, Any]
    question: dict[str, Any] = {}
    try:
        question = json.loads(text)
        asked, state = question["ask"], State.from_data(question["state"])
        found = {asked: {"view": views.view, "advice": views.advice}[asked](state, question["files"])}
    except AccelError as error:
        found = error_of(error, question.get("files"))
    except MemoryError:
        found = error_of(AccelError("this state takes more memory than the studio may use"))
    except RecursionError:
        found = error_of(AccelError("this state is nested too deeply"))
    return json.dumps(found, separators=(",", ":"))


def limit_memory(nbytes: int) -> None:
    """Have what needs more memory fail, where the system can."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))


def main() -> None:
    """Answer until there is nothing more to answer; the argument is the bytes of memory that may be used."""
    limit_memory(int(sys.argv[1]))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    views = Views()
    views.view(State(workload="gemm", parameters={"M": 16, "N": 16, "K": 16}, machine="tiny"))  # imports
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        print(answer(views, line), file=replies, flush=True)


if __name__ == "__main__":
    main()

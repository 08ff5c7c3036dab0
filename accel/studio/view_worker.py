"""The process that computes views: a line of JSON in, a line of JSON out.

Other output goes to standard error.
"""

import json
import os
import sys
from typing import Any

from accel.base.errors import AccelError
from accel.studio.studio_state import StudioState
from accel.studio.studio_view import ViewCache, error_data


def answer(views: ViewCache, text: str) -> str:
    """Answer a question.

    The question has ``ask`` (``view``, ``advice`` or ``page``), the page's ``state``, and ``files``, paths by
    name.
    """
    found: dict[str, Any]
    question: dict[str, Any] = {}
    try:
        question = json.loads(text)
        asked, state = question["ask"], StudioState.from_data(question["state"])
        answers = {"view": views.view, "advice": views.advice, "page": views.page}
        found = {asked: answers[asked](state, question["files"])}
    except AccelError as error:
        found = error_data(error, question.get("files"))
    except MemoryError:
        found = error_data(AccelError("this state needs more memory than the studio may use"))
    except RecursionError:
        found = error_data(AccelError("this state is nested too deeply"))
    return json.dumps(found, separators=(",", ":"))


def limit_memory(nbytes: int) -> None:
    """Limit allocations, where the system can."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))


def main() -> None:
    """Answer questions until the input ends. The argument is the memory limit in bytes."""
    limit_memory(int(sys.argv[1]))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    views = ViewCache()
    small = StudioState(workload="gemm", parameters={"M": 16, "N": 16, "K": 16}, machine="tiny")
    views.view(small)  # imports everything
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        print(answer(views, line), file=replies, flush=True)


if __name__ == "__main__":
    main()

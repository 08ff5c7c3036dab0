"""A limit on the time of runs in ONNX Runtime, for example of an endless Loop.

One thread watches all runs, because starting one takes longer than most runs. It ends after the last.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

MAX_SECONDS = 600.0
_INTERVAL_SECONDS = 0.5


class _Watchdog:
    def __init__(self) -> None:
        self.runs: dict[int, tuple[float, Any]] = {}
        self._lock = Lock()
        self._thread: Thread | None = None

    def add(self, options: Any) -> None:
        with self._lock:
            self.runs[id(options)] = time.monotonic() + MAX_SECONDS, options
            if self._thread is None or not self._thread.is_alive():  # not alive: a forked process
                self._thread = Thread(target=self._watch, name="run time limit", daemon=True)
                self._thread.start()

    def remove(self, options: Any) -> None:
        with self._lock:
            del self.runs[id(options)]

    def _watch(self) -> None:
        while True:
            time.sleep(_INTERVAL_SECONDS)
            with self._lock:
                now = time.monotonic()
                for deadline, options in self.runs.values():
                    if deadline < now:
                        options.terminate = True
                if not self.runs:
                    self._thread = None
                    return


_WATCHDOG = _Watchdog()


@contextmanager
def limited_run() -> Iterator[Any]:
    """Yield options with which a run of a session ends after :data:`MAX_SECONDS`."""
    import onnxruntime  # an extra

    options = onnxruntime.RunOptions()
    _WATCHDOG.add(options)
    try:
        yield options
    finally:
        _WATCHDOG.remove(options)

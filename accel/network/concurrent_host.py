"""Work of the host in parallel with the machine."""

from collections.abc import Mapping
from concurrent.futures import Executor, Future

from accel.graph.graph_tensor import Array
from accel.network.host_regions import HostRegion

Arrays = dict[str, Array]


class ConcurrentHost:
    """Runs host regions in a thread.

    Args:
        executor: with one worker, so that regions run in order.
    """

    def __init__(self, executor: Executor, constants: Mapping[str, Array]) -> None:
        self._executor = executor
        self._constants = constants
        self._pending: dict[str, Future[Arrays]] = {}
        self._futures: list[Future[Arrays]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._pending

    def start(self, region: HostRegion, inputs: Mapping[str, Array]) -> None:
        constants = self._constants

        def array(name: str) -> Array:
            return inputs[name] if name in inputs else constants[name]

        future = self._executor.submit(region.run, array)
        self._futures.append(future)
        self._pending |= dict.fromkeys(region.needed, future)

    def results(self, name: str) -> Arrays:
        """Wait for a region's results, or raise its error."""
        return self._pending[name].result()

    def wait(self) -> Arrays:
        found: Arrays = {}
        for future in self._futures:
            found |= future.result()
        return found

"""A component with its internal signals."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Const, Elaboratable, Fragment, Shape, Signal, Value
from amaranth.hdl._ast import Assign
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow


class Opened(Elaboratable):
    """A component, elaborated once. A submodule's signals are those that it drives, so an output is found in
    the submodule, an input in the module around it."""

    def __init__(self, component: wiring.Component) -> None:
        self.component = component
        self._fragment = Fragment.get(component, None)

    def elaborate(self, platform: Any) -> Fragment:
        return self._fragment

    def inputs(self) -> dict[str, Value]:
        ports = self.component.signature.flatten(self.component)
        return {".".join(map(str, path)): value for path, member, value in ports if member.flow is Flow.In}

    def signal(self, path: str) -> Signal:
        """Return a signal by its path, for example ``store.flight.slot``."""
        *parts, name = path.split(".")
        found = [signal for signal in _driven(self._part(parts)) if signal.name == name]
        if len(found) != 1:
            raise LookupError(f"{len(found)} signals are called {path!r}")
        return found[0]

    def input(self, path: str) -> Signal:
        *parts, name = path.split(".")
        part = self._part(parts)
        driven = set(map(id, _driven(part)))
        read = {id(signal): signal for signal in _read(part)}
        found = [signal for key, signal in read.items() if signal.name == name and key not in driven]
        if len(found) != 1:
            raise LookupError(f"{len(found)} inputs are called {path!r}")
        return found[0]

    def cell(self, path: str, index: Value) -> Signal:
        """Return a memory row's contents in the same cycle. Rows beyond the end hold anything."""
        memory = self._part(path.split("."))
        if not isinstance(memory, MemoryInstance):
            raise LookupError(f"{path!r} is not a memory")
        word = Signal(Shape.cast(memory._data.shape), name="cell")
        memory.read_port(domain="comb", addr=index, data=word, en=Const(1), transparent_for=())
        return word

    def cut(self, path: str) -> Signal:
        signal = self.signal(path)
        statements = self._part(path.split(".")[:-1]).statements["comb"]
        drives = [one for one in statements if isinstance(one, Assign) and one.lhs is signal]
        if len(drives) != 1:
            raise LookupError(f"{path!r} is driven by {len(drives)} statements")
        statements.remove(drives[0])
        return signal

    def _part(self, names: list[str]) -> Any:
        fragment: Any = self._fragment
        for name in names:
            found = [sub for sub, its_name, _ in fragment.subfragments if its_name == name]
            if len(found) != 1:
                raise LookupError(f"{len(found)} parts are called {name!r} in {'.'.join(names)!r}")
            fragment = found[0]
        return fragment


def _driven(fragment: Fragment) -> Iterator[Signal]:
    found = {id(signal): signal for one in _statements(fragment) for signal in one._lhs_signals()}
    yield from found.values()


def _read(fragment: Fragment) -> Iterator[Signal]:
    for statement in _statements(fragment):
        yield from statement._rhs_signals()


def _statements(fragment: Fragment) -> Iterator[Any]:
    for statements in fragment.statements.values():
        yield from statements

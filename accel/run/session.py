"""Programs that run one after the other on one machine and hand over tensors in its DRAM.

What a program has written stays there in elements. A program that takes it in the same packing reads it where
it lies; for any other the host unpacks and packs it, which is counted.
"""

import time
import weakref
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_array, plain_array
from accel.base.errors import AccelError, ProgramError, ShapeError
from accel.compiler.target.machine import Machine, machine
from accel.core.config import SPECS, Config
from accel.image.dram import Dram
from accel.image.image import ImageTensor
from accel.image.layout import PackedLayout
from accel.image.link import alignment, linked, parts
from accel.image.references import Part
from accel.run.backends.choose import open_backend
from accel.run.launch import launch
from accel.run.options import RunOptions
from accel.run.program import Program, as_program
from accel.run.result import Result
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

Array = npt.NDArray[Any]


@dataclass(kw_only=True)
class Packing:
    """What the host did with tensors around the runs, and what it did not have to do.

    Attributes:
        packed, packed_bytes: copies that it brought into elements, and the bytes that they take in DRAM.
        unpacked, unpacked_bytes: those that it brought back; what is only compared does not count.
        kept, kept_bytes: inputs that a program found in DRAM as it wants them.
        seconds: that packing and unpacking took.
    """

    packed: int = 0
    packed_bytes: int = 0
    unpacked: int = 0
    unpacked_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.packed} packed ({self.packed_bytes:,} bytes), {self.unpacked} unpacked "
            f"({self.unpacked_bytes:,} bytes), {self.kept} taken as they lie ({self.kept_bytes:,} bytes)"
        )


class _Values:
    """The values of a tensor: plain ones, flat, if the host has them, and copies in DRAM."""

    def __init__(self, plain: Array | None = None) -> None:
        self.plain = plain
        self.copies: list[ImageTensor] = []
        self.clean: set[int] = set()
        """Offsets of copies that are zero where their layout goes beyond the tensor."""


class SessionTensor:
    """A tensor of a session: in its DRAM, with the host, or both."""

    def __init__(self, session: "Session", values: _Values, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self._session = session
        self._values = values

    def numpy(self) -> Array:
        """The plain values, not to be changed; the host unpacks them once.

        Raises:
            AccelError: the session is closed.
        """
        self._session._check_open()
        return self._session._plain(self._values).reshape(self.shape)

    def reshape(self, *shape: int) -> "SessionTensor":
        """The same values in row-major order under another shape, of which one size may be -1; nothing moves.

        Raises:
            ShapeError: the shape has another number of values.
        """
        try:
            found = np.empty(self.shape, dtype=np.int8).reshape(shape).shape
        except (TypeError, ValueError):
            raise ShapeError(
                f"the new shape is {list(shape)}; the tensor's is {list(self.shape)}, of another size"
            ) from None
        return SessionTensor(self._session, self._values, found, self.dtype)

    def __repr__(self) -> str:
        return f"SessionTensor({self.dtype}{list(self.shape)})"


class Session:
    """One machine and its DRAM, for programs that run one after the other.

    Between programs the machine starts anew, but for what is in DRAM. With ``backend="rtl"`` a session holds
    the hardware in simulation: use it in a ``with`` statement, or call :meth:`close`. After that nothing
    runs, and its tensors' values are gone: take them by ``numpy()`` before.

    Args:
        on: the machine, its configuration or the configuration's name.
        backend: ``sim`` (function and cycles), ``functional`` (function only) or ``rtl`` (the hardware).
        seed: of what is in the scratchpads at the start of a run, and of inputs that are not given.
        engine: what simulates the hardware, see :data:`~accel.hw.engines.choose.ENGINES`.

    Attributes:
        config: the machine.
        results: of the runs, in order; with their outputs if those were compared.
        packing: what the host did.

    Raises:
        ConfigError: there is no such machine.
        AccelError: an unknown backend, an engine for another one, or a negative seed.
        EngineError: the engine does not exist or cannot be built.
    """

    def __init__(
        self,
        on: Machine | Config | str,
        *,
        backend: str = "sim",
        seed: int = 0,
        engine: str | None = None,
    ) -> None:
        self._options = RunOptions(seed=seed, engine=engine)
        self.config = machine(on).config
        self._backend = open_backend(backend, self.config, self._options)
        self.results: list[Result] = []
        self.packing = Packing()
        self._closed = False
        self._dram = Dram.of(self.config)
        self._space = _Space(self.config.mem_size, alignment(self.config))
        self._timed: dict[int, tuple[Program, Program]] = {}
        """By the id of programs, which are kept so that nobody else takes it: the same with this timing."""
        self._programs: dict[int, tuple[Program, dict[Part, int]]] = {}
        """By the id of those: where their own parts are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back DRAM and the hardware, if there is any; what has been measured stays."""
        self._closed = True
        self._dram = Dram.of(self.config)
        self._backend.close()

    def _check_open(self) -> None:
        """Refuse to go on after :meth:`close`.

        Raises:
            AccelError: the session is closed.
        """
        if self._closed:
            raise AccelError("the session is closed; open another, and take values by numpy() before close()")

    @property
    def cycles(self) -> int | None:
        """Of all runs together; None if time was not simulated."""
        cycles = [result.cycles for result in self.results]
        return None if None in cycles else sum(n for n in cycles if n is not None)

    def tensor(self, values: Array) -> SessionTensor:
        """An array of the host's, for several runs; each packing that they take it in is made once.

        Raises:
            ShapeError: it is no array of int8 or int32, or a masked one.
            AccelError: the session is closed.
        """
        self._check_open()
        array = plain_array("what a tensor is made of", values, "an int8 or int32 array")
        if array.dtype.name not in ("int8", "int32"):
            raise ShapeError(f"a tensor is made of {array.dtype}; it must be an int8 or int32 array")
        return SessionTensor(self, _Values(array.flatten()), array.shape, array.dtype.name)

    def run(
        self,
        program: Program,
        inputs: Mapping[str, SessionTensor | Array] | None = None,
        *,
        check: bool = True,
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, SessionTensor]:
        """Run a program; its outputs, by name, stay in DRAM.

        Args:
            program: compiled for a machine of this geometry; it runs with the session's timing.
            inputs: tensors of this session, or arrays, by name; those not given are random.
            check: compare with :meth:`~accel.run.compiled.Compiled.reference`; what that unpacks is not
                counted.
            max_cycles, max_uops: limits.
            progress: of the hardware, called now and then with the cycle.

        Raises:
            AccelError: the session is closed.
            ProgramError: it is no program, one for another machine, cannot be moved, or DRAM is full.
            ShapeError: an input that the program does not have, or of another shape or dtype.
            HardwareError: the hardware breaks a rule.
            MismatchError: the outputs are wrong.
            MachineError, DeadlockError, LimitExceeded: the machine stopped early.
        """
        self._check_open()
        options = replace(self._options, max_cycles=max_cycles, max_uops=max_uops, progress=progress)
        program = self._for_session(program)
        given = self._inputs(program, inputs)
        prepared = {t.name for t in program.tensors if t.preparation is not None and t.role == "input"}
        program = program.for_values({name: self._peek(given[name]) for name in prepared})
        before = self.packing.seconds
        placed, outputs = self._placed(program, given)
        self._backend.reset()
        pads = Scratchpads.random(self.config, self._options.seed)
        done = launch(placed, self._dram, pads, self._backend, options)
        compared = check and program.has_expression and done.error is None
        result = done.result(
            {name: self._peek(tensor) for name, tensor in outputs.items()} if compared else {},
            reference=(lambda: program.reference({name: self._peek(t) for name, t in given.items()}))
            if compared
            else None,
            compulsory=program.compulsory,
            pack_seconds=self.packing.seconds - before,
        )
        result.raise_if_stopped()
        self.results.append(result)
        result.raise_if_wrong()
        return outputs

    # --- what a program needs ------------------------------------------------------------------------

    def _for_session(self, program: Program) -> Program:
        """The program with the session's timing."""
        if not isinstance(program, Program):
            raise ProgramError(
                f"what is to run is a {type(program).__name__}; it must be a program, as accel.build makes"
            )
        theirs, mine = program.config, self.config
        for name, spec in SPECS.items():
            if spec.kind == "geometry" and getattr(theirs, name) != getattr(mine, name):
                raise ProgramError(
                    f"the program is compiled for {name}={getattr(theirs, name)}; "
                    f"the session's machine has {getattr(mine, name)}"
                )
        kept = self._timed.get(id(program))
        if kept is None:
            kept = self._timed[id(program)] = program, program.with_timing(mine)
        return kept[1]

    def _inputs(
        self, program: Program, inputs: Mapping[str, SessionTensor | Array] | None
    ) -> dict[str, SessionTensor]:
        """A tensor of this session for every input."""
        known = program.inputs
        given = program.named_inputs(inputs)
        for name, value in given.items():
            if not isinstance(value, SessionTensor):
                given[name] = check_array(name, value, *known[name])
            elif value._session is not self:
                raise ShapeError(f"{name} is a tensor of another session; give its values, by numpy()")
            elif (value.shape, value.dtype) != known[name]:
                shape, dtype = known[name]
                raise ShapeError(
                    f"{name} is {value.dtype}{list(value.shape)}; it must be {dtype}{list(shape)}"
                )
        random = program.random_inputs(self._options.seed) if known.keys() - given.keys() else {}
        return {
            name: value if isinstance(value, SessionTensor) else self.tensor(value)
            for name, value in (random | given).items()
        }

    def _placed(
        self, program: Program, given: Mapping[str, SessionTensor]
    ) -> tuple[Program, dict[str, SessionTensor]]:
        """The program where it can run, with its instructions and inputs in DRAM, and its outputs to be."""
        places = dict(self._own_parts(program))
        outputs: dict[str, SessionTensor] = {}
        for tensor in program.tensors:
            part = Part(offset=tensor.offset, nbytes=tensor.nbytes)
            if tensor.role == "input":
                places[part] = self._input_offset(tensor, given[tensor.name]._values)
            elif tensor.role == "output":
                values = _Values()
                places[part] = self._place(tensor, values).offset
                outputs[tensor.name] = SessionTensor(self, values, tensor.shape, tensor.dtype)
        placed = as_program(linked(program, places))
        self._dram.write(self.config.mem_base + placed.code_offset, placed.code)
        return placed, outputs

    def _own_parts(self, program: Program) -> dict[Part, int]:
        """Where all is that is neither input nor output; what it holds is written when it is new."""
        if id(program) in self._programs:
            return self._programs[id(program)][1]
        tensors = {t.offset for t in program.tensors if t.role != "constant"}
        own = [part for part in parts(program) if part.offset not in tensors]
        places: dict[Part, int] = {}
        try:
            for part in own:
                places[part] = self._space.take(part.nbytes, part.offset)
        except ProgramError:
            for offset in places.values():
                self._space.give_back(offset)
            raise
        self._programs[id(program)] = program, places
        for part, place in places.items():  # what nobody writes is zero
            self._dram.write(self.config.mem_base + place, bytes(part.nbytes))
        for offset, content in program.segments:
            part = next(one for one in own if one.offset <= offset < one.stop)
            self._dram.write(self.config.mem_base + places[part] + offset - part.offset, content)
        return places

    def _input_offset(self, tensor: ImageTensor, values: _Values) -> int:
        """Where a program finds an input: in a copy that there is already, or in a new one."""
        for copy in values.copies:
            if self._serves(copy, tensor, values):
                self.packing.kept += 1
                self.packing.kept_bytes += tensor.nbytes
                return copy.offset
        plain = self._plain(values).reshape(tensor.shape)
        start = time.perf_counter()
        copy = self._place(tensor, values)
        self._dram.write(self.config.mem_base + copy.offset, tensor.pack(plain))
        values.clean.add(copy.offset)
        self.packing.packed += 1
        self.packing.packed_bytes += tensor.nbytes
        self.packing.seconds += time.perf_counter() - start
        return copy.offset

    def _place(self, tensor: ImageTensor, values: _Values) -> ImageTensor:
        """Room for a copy, for as long as anybody has the values."""
        offset = self._space.take(tensor.nbytes, tensor.offset)
        weakref.finalize(values, self._space.give_back, offset)
        fields = {name: getattr(tensor, name) for name in tensor.__dataclass_fields__}
        copy = ImageTensor(**(fields | {"offset": offset}))
        values.copies.append(copy)
        return copy

    def _serves(self, copy: ImageTensor, tensor: ImageTensor, values: _Values) -> bool:
        """Whether a program that wants ``tensor`` can take a copy as it lies."""
        theirs, mine = ((t.dtype, t.preparation, t.widening) for t in (copy, tensor))
        if theirs != mine or (copy.offset - tensor.offset) % alignment(self.config):
            return False
        if copy.layout != tensor.layout and (
            tensor.widening is not None or not _same_packing(copy.layout, tensor.layout)
        ):
            return False
        if copy.offset not in values.clean:
            beyond = _origins(copy.layout) == 0
            if beyond.any() and self._raw(copy).view(copy.dtype)[beyond].any():
                return False
            values.clean.add(copy.offset)
        return True

    # --- values --------------------------------------------------------------------------------------

    def _plain(self, values: _Values) -> Array:
        """The plain values, flat; the host keeps what it has unpacked."""
        if values.plain is None:
            start = time.perf_counter()
            values.plain = self._unpacked(values)
            self.packing.unpacked += 1
            self.packing.unpacked_bytes += values.copies[0].nbytes
            self.packing.seconds += time.perf_counter() - start
        return values.plain

    def _peek(self, tensor: SessionTensor) -> Array:
        """The plain values for a comparison; nothing is counted or kept."""
        values = tensor._values
        return (self._unpacked(values) if values.plain is None else values.plain).reshape(tensor.shape)

    def _unpacked(self, values: _Values) -> Array:
        copy = values.copies[0]
        return copy.unpack(self._raw(copy)).reshape(-1)

    def _raw(self, copy: ImageTensor) -> npt.NDArray[np.uint8]:
        return self._dram.read(self.config.mem_base + copy.offset, copy.nbytes)


@lru_cache(maxsize=256)
def _same_packing(a: PackedLayout, b: PackedLayout) -> bool:
    """Whether two layouts bring the same values, in row-major order, to the same places."""
    return np.array_equal(_origins(a), _origins(b))


def _origins(layout: PackedLayout) -> npt.NDArray[np.int32]:
    """For every packed value the number of the plain one that it is, from 1 on; 0 where it is none."""
    size = int(np.prod(layout.shape))
    return layout.pack(np.arange(1, size + 1, dtype=np.int32).reshape(layout.shape)).reshape(-1)


class _Space:
    """Which bytes of the window are taken."""

    def __init__(self, size: int, step: int) -> None:
        self._size = size
        self._step = step
        self._taken: list[tuple[int, int]] = []

    def take(self, nbytes: int, like: int) -> int:
        """The first offset with so many free bytes that differs from ``like`` by whole steps.

        Raises:
            ProgramError: there is none.
        """
        offset = phase = like % self._step
        for start, stop in self._taken:
            if offset + nbytes <= start:
                break
            offset = max(offset, -(-(stop - phase) // self._step) * self._step + phase)
        if offset + nbytes > self._size:
            raise ProgramError(
                f"the session has no room for {nbytes} more bytes; the window has mem_size={self._size}"
            )
        insort(self._taken, (offset, offset + nbytes))
        return offset

    def give_back(self, offset: int) -> None:
        """Free what was taken at an offset."""
        self._taken.remove(next(one for one in self._taken if one[0] == offset))

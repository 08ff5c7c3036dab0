"""The debugger's commands."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from accel.assembly import Annotator, PlaceNames, stage_label, token_label
from accel.base.errors import AccelError, nearest
from accel.core.events import Event, EventKind
from accel.core.isa import Loops, Unit, format_instruction
from accel.core.token_rules import WORKERS, Counter
from accel.debug.breakpoints import parse_breakpoint
from accel.debug.debugger import Debugger, Halt
from accel.debug.memory_locations import MemoryLocation, parse_location

HELP = """\
step [N]            continue until an instruction has retired, N times
cycle [N]           continue for N cycles, and list their events (functional: instructions)
continue            continue until a breakpoint is hit or the run ends
goto CYCLE          continue until a cycle has happened
restart             go back to the beginning; breakpoints stay
break WHERE         stop at an instruction's number, 'cycle N', 'token load>compute', or at the start of
                    an access to memory: LOCATION, 'read LOCATION' or 'write LOCATION'
breaks              list all breakpoints
delete N            delete breakpoint N
where               what every unit does, and what it waits for
tokens              show the token counters
list [N] [COUNT]    list instructions from N on; without N, around the current ones
uops N [COUNT]      list the micro-ops of instruction N, loops expanded
print LOCATION      show memory: acc[3], inp[0:4], uop, dram[0x1000:0x1040], dram[C:C+16], or a tensor
quit                leave

A command may be abbreviated if it is unambiguous. An instruction's effect is visible after it has retired."""

_DEFAULT_COUNT = 10
_MAX_STEPS = 1 << 40


class Session:
    """A debugger with text commands.

    Attributes:
        done: after ``quit``.
        failed: the run has ended with an error.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.done = False
        self.failed = False
        self._names = PlaceNames(debugger.program)
        self.commands: dict[str, Callable[[list[str]], Iterator[str]]] = {
            "step": self._step,
            "cycle": self._cycle,
            "continue": self._continue,
            "goto": self._goto,
            "restart": self._restart,
            "break": self._break,
            "breaks": self._breaks,
            "delete": self._delete,
            "where": self._where,
            "tokens": self._tokens,
            "list": self._list,
            "uops": self._uops,
            "print": self._print,
            "help": self._help,
            "quit": self._quit,
        }

    def run(self, line: str) -> str:
        """Execute a command and return its output.

        Raises:
            AccelError: unknown command, or failure.
        """
        words = line.partition("#")[0].split()
        if not words:
            return ""
        return "".join(text + "\n" for text in self._command(words[0])(words[1:]))

    def _command(self, word: str) -> Callable[[list[str]], Iterator[str]]:
        if word in self.commands:
            return self.commands[word]
        matches = [name for name in self.commands if name.startswith(word)]
        if len(matches) == 1:
            return self.commands[matches[0]]
        if matches:
            raise AccelError(f"{word!r} is ambiguous; it may be {' or '.join(matches)}")
        raise AccelError(f"{word!r} is not a command; {nearest(word, self.commands)}")

    def _step(self, words: list[str]) -> Iterator[str]:
        for _ in range(_count(words, "step")):
            halt = self.debugger.step()
            yield from self._describe_halt(halt)
            if halt.end is not None or halt.breakpoint is not None:
                return

    def _cycle(self, words: list[str]) -> Iterator[str]:
        target = self.debugger.cycle + _count(words, "cycle")
        begin = self.debugger.cycle
        halt = self.debugger.run_to(target)
        for event in self.debugger.events_between(begin, halt.cycle):
            yield self._event(event)
        yield from self._describe_halt(halt)

    def _continue(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "continue")
        yield from self._describe_halt(self.debugger.run_to())

    def _goto(self, words: list[str]) -> Iterator[str]:
        target = _number(words, "goto", "a cycle")
        if target < self.debugger.cycle:
            self.debugger.restart()
        yield from self._describe_halt(self.debugger.run_to(target))

    def _restart(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "restart")
        self.debugger.restart()
        yield "at the beginning"

    def _describe_halt(self, halt: Halt) -> Iterator[str]:
        at = f"{self._unit} {halt.cycle}"
        self.failed |= halt.error is not None
        if halt.end is not None:
            yield f"{at}: {halt.end}"
        elif halt.breakpoint is not None:
            yield f"{at}: breakpoint at {halt.breakpoint}{self._memory_note(halt)}"
            if halt.event is not None:
                yield self._event(halt.event)
        elif halt.event is not None:
            for event in self.debugger.events_between(halt.cycle - 1, halt.cycle):
                if event.kind is EventKind.RETIRE:
                    yield self._event(event)
        else:
            yield at

    def _memory_note(self, halt: Halt) -> str:
        if halt.breakpoint is None or halt.breakpoint.location is None or halt.event is None:
            return ""
        running = self.debugger.state.units[halt.event.unit].running
        return f"; memory is as {'before' if halt.event.instruction in running else 'after'} it"

    @property
    def _unit(self) -> str:
        return "cycle" if self.debugger.timed else "step"

    def _event(self, event: Event) -> str:
        begin = f"{self._unit} {event.cycle}  {event.unit.label:<7}  "
        kind = event.kind
        if kind in (EventKind.TOKEN_POP, EventKind.TOKEN_PUSH):
            verb = "takes" if kind is EventKind.TOKEN_POP else "sends"
            return f"{begin}{event.instruction} {verb} a token {token_label(Counter(event.value))}"
        if kind in (EventKind.BURST_GRANT, EventKind.BURST_LAST):
            what = "is granted a burst" if kind is EventKind.BURST_GRANT else "has the last beat of a burst"
            return f"{begin}{event.instruction} {what} of {event.value}"
        if kind is EventKind.QUEUE_PUSH:
            return f"{begin}{event.instruction} goes to {Unit(event.value).label}"
        if kind is EventKind.QUEUE_POP:
            return f"{begin}{event.instruction} leaves the queue"
        verb = "starts" if kind is EventKind.START else "has retired"
        return f"{begin}{event.instruction} {verb}: {self._text(event.instruction)}"

    def _text(self, index: int) -> str:
        return " ".join(format_instruction(self.debugger.instructions[index], self._names).split())

    def _break(self, words: list[str]) -> Iterator[str]:
        found = parse_breakpoint(words, self.debugger.program)
        if found.cycle is not None and not self.debugger.timed:
            raise AccelError("functional execution has no cycles; 'goto N' runs N instructions")
        yield f"breakpoint {self.debugger.add(found)} at {found}"

    def _breaks(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "breaks")
        for number, one in self.debugger.breakpoints.items():
            yield f"{number}  {one}"
        if not self.debugger.breakpoints:
            yield "no breakpoints"

    def _delete(self, words: list[str]) -> Iterator[str]:
        number = _number(words, "delete", "a breakpoint's number")
        if self.debugger.breakpoints.pop(number, None) is None:
            raise AccelError(f"breakpoint {number} does not exist; 'breaks' lists those that do")
        yield from ()

    def _where(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "where")
        state = self.debugger.state
        count = len(self.debugger.instructions)
        over = ", the run is over" if self.debugger.ended else ""
        done = f"{state.dispatched} of {count} instructions dispatched"
        yield f"{self._unit} {self.debugger.cycle}: {done}{over}"
        for unit in WORKERS:
            one = state.units[unit]
            parts = [f"runs {index}: {self._text(index)}" for index in one.running]
            head = state.head(unit)
            if head is not None:
                parts += self._waiting(head)
            elif one.unstarted and not one.running:
                parts.append(f"has no work; {one.unstarted[0]} is its next instruction")
            if not one.unstarted and not one.running:
                parts.append("has nothing left to do")
            for number, part in enumerate(parts):
                yield f"{unit.label if not number else '':<7}  {part}"

    def _waiting(self, head: int) -> Iterator[str]:
        missing = self.debugger.state.missing_tokens(head)
        conflicts = list(self.debugger.store_memories.waits(head)) if self.debugger.timed else []
        for reason in conflicts:
            yield f"waits at {head} {reason}: {self._text(head)}"
        if not missing and not conflicts:
            yield f"has {head} next, with all its tokens: {self._text(head)}"
        for counter, sender in missing:
            by = "nobody will send it"
            if sender is not None:
                by = f"instruction {sender} sends it"
            yield f"waits at {head} for a token {token_label(counter)}; {by}: {self._text(head)}"

    def _tokens(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "tokens")
        for counter in Counter:
            yield f"{token_label(counter):<13}  {self.debugger.state.tokens[counter]}"

    def _list(self, words: list[str]) -> Iterator[str]:
        if len(words) > 2:
            raise AccelError("list takes an instruction's number and a count")
        count = _count(words[1:], "list") if len(words) == 2 else _DEFAULT_COUNT
        state = self.debugger.state
        marks = {index: "*" for unit in WORKERS for index in state.units[unit].running}
        marks |= {h: ">" for unit in WORKERS if (h := state.head(unit)) is not None}
        first = max(0, min(marks, default=state.dispatched) - 2)
        if words:
            first = _number(words[:1], "list", "an instruction's number")
            self.debugger.instruction(first)
        last = min(first + count, len(self.debugger.instructions))
        width = len(str(last))
        for index in range(first, last):
            stage = stage_label(self.debugger.program.provenance, index)
            yield f"{marks.get(index, ' ')} {index:>{width}}  {stage}{self._text(index)}"

    def _uops(self, words: list[str]) -> Iterator[str]:
        if not 1 <= len(words) <= 2:
            raise AccelError("uops takes an instruction's number and optionally a count")
        index = _number(words[:1], "uops", "an instruction's number")
        instruction = self.debugger.instruction(index)
        if not isinstance(instruction, Loops):
            raise AccelError(f"instruction {index} is {instruction.mnemonic}; GEMM and ALU have micro-ops")
        count = _count(words[1:], "uops") if len(words) == 2 else _DEFAULT_COUNT
        annotator = Annotator(self.debugger.program)
        for number, one in enumerate(self.debugger.instructions[:index]):
            annotator.comment(number, one)
        yield from annotator.steps(index, instruction, count)

    def _print(self, words: list[str]) -> Iterator[str]:
        text = " ".join(words)
        if not text:
            raise AccelError(
                "print takes a location, for example acc[0:4], dram[0x1000:0x1040] or the name of a tensor"
            )
        array = self.debugger.tensor(text)
        what = text
        if array is None:
            location = parse_location(text, self.debugger.program)
            array, what = self.debugger.read(location), _location_text(location)
        if array.ndim == 3 and array.shape[1] == 1:
            array = array[:, 0]  # elements with a single row
        shape = "x".join(map(str, array.shape))
        yield f"{what}: {array.dtype}[{shape}]"
        yield from np.array2string(array, max_line_width=110, threshold=2048).splitlines()

    def _help(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "help")
        yield from HELP.splitlines()

    def _quit(self, words: list[str]) -> Iterator[str]:
        _no_arguments(words, "quit")
        self.done = True
        yield from ()


def _location_text(location: MemoryLocation) -> str:
    return f"{location} as dst, src, wgt" if location.memory == "uop" else str(location)


def _no_arguments(words: list[str], command: str) -> None:
    if words:
        raise AccelError(f"{command} takes no argument; {' '.join(words)!r} is given")


def _number(words: list[str], command: str, what: str) -> int:
    if len(words) != 1 or not re.fullmatch(r"\d{1,15}", words[0]):
        raise AccelError(f"{command} takes {what}; {' '.join(words)!r} is given")
    return int(words[0])


def _count(words: list[str], command: str) -> int:
    if not words:
        return 1
    count = _number(words, command, "a positive number")
    if not 1 <= count <= _MAX_STEPS:
        raise AccelError(f"{command} takes a positive number; {words[0]!r} is given")
    return count

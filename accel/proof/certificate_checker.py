"""The checker of certificates. Only this file has to be trusted, so it imports nothing of accel.

    python accel/proof/certificate_checker.py gemm.json gemm.accel

It follows the certificate's order once: every instruction is fetched, finds its tokens, and has a valid
clock. No counter can overflow. Of two accesses of different units to the same element or byte, at least one a
write, the clock of the second includes the first. docs/explain/verification.md has the format, and the other
facts to trust.
"""

import hashlib
import json
import sys
import zipfile
import zlib
from bisect import bisect_left
from typing import Any

FORMAT, VERSION = "accel-certificate", 1
LOAD, COMPUTE, STORE = range(3)
UNITS = ("load", "compute", "store")
ENDS = ((LOAD, COMPUTE), (COMPUTE, LOAD), (COMPUTE, STORE), (STORE, COMPUTE))
"""Source and target of the counters."""
FLAGS = {LOAD: (None, 1, None, 0), COMPUTE: (0, 3, 1, 2), STORE: (2, None, 3, None)}
"""By unit, the counters of pop_prev, pop_next, push_prev and push_next."""
LOADS = {1: LOAD, 2: LOAD, 4: STORE, 6: STORE, 7: STORE}
SETS = {1: LOAD, 2: LOAD, 4: STORE}
"""Units of LOADs and SETs by memory id, otherwise compute."""
SHARED = ("dram", "uop", "inp", "wgt", "acc")
"""Memories of several units. The others belong to the store unit."""
Pairs = list[tuple[int, int]]
Step = tuple[int, list[int], list[int], bool]
"""Unit, popped and pushed counters of an instruction, and whether it is a SET."""


class Refused(Exception):
    """The certificate does not prove what it says."""


class Unreadable(Exception):
    pass


def need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)


def digest(certificate: dict[str, Any]) -> str:
    """Return the SHA-256 of a certificate without its digest."""
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def decoded(code: bytes) -> list[Step]:
    found = []
    for at in range(0, len(code), 16):
        word = int.from_bytes(code[at : at + 2], "little")
        opcode, memory = word & 7, word >> 7 & 7
        unit = {0: LOADS.get(memory, COMPUTE), 1: STORE, 6: SETS.get(memory, COMPUTE)}.get(opcode, COMPUTE)
        taken = [c if word >> 3 + bit & 1 else None for bit, c in enumerate(FLAGS[unit])]
        pops, pushes = ([c for c in half if c is not None] for half in (taken[:2], taken[2:]))
        found.append((unit, pops, pushes, opcode == 6))
    return found


def check(certificate: dict[str, Any], code: bytes) -> int:
    """Return the number of proven instructions.

    Raises:
        Refused: with the reason.
    """
    need(certificate["format"] == FORMAT and certificate["version"] == VERSION, "no certificate of version 1")
    need(certificate["digest"] == digest(certificate), "its digest is not that of its content")
    need(certificate["program"] == hashlib.sha256(code).hexdigest(), "it is about another program")
    need(0 < len(code) == 16 * (len(code) // 16), "the program is not a number of whole instructions")
    program = decoded(code)
    count = len(program)
    table, of = certificate["accesses"], certificate["accesses_of"]
    order = certificate["order"] or range(count)
    need(sorted(order) == list(range(count)), "its order is not one of all instructions")
    need(len(certificate["clocks"]) == len(of) == count, "it is not about as many instructions")
    need(all(type(one) is int and 0 <= one < len(table) for one in of), "accesses are missing")
    limit, start = certificate["token_limit"], certificate["tokens"]
    need(len(start) == 4 and all(0 <= one <= limit for one in start), "four counters cannot start so")
    memories = Memories(table, certificate["span"])

    popped: list[list[int]] = [[], [], [], []]  # positions of popping instructions in the target unit
    seen = [0, 0, 0]
    for unit, pops, _, _ in program:
        for counter in pops:
            popped[counter].append(seen[unit])
        seen[unit] += 1
    tokens = [[-1] * n for n in start]  # the pushers, in order
    taken, done, own = [0] * 4, [[0, 0, 0] for _ in UNITS], Own()
    known: dict[int, list[int]] = {-1: [0, 0, 0]}  # clocks of pushers at retirement
    matches = [iter(found) for found in certificate["matches"]]
    fetch, positions = Fetch(program, certificate["queues"], certificate["serial"]), [0, 0, 0]
    for index in order:
        unit, pops, pushes, is_set = program[index]
        fetch.start(index)
        clock, stored = list(done[unit]), 0
        for counter in pops:
            need(taken[counter] < len(tokens[counter]), f"instruction {index} pops a token that is not there")
            pusher = tokens[counter][taken[counter]]
            need(next(matches[counter], None) == pusher, f"instruction {index} is matched with another push")
            taken[counter] += 1
            clock = [max(pair) for pair in zip(clock, known[pusher], strict=True)]
            stored = max(stored, known[pusher][STORE])
        need(certificate["clocks"][index] == clock, f"the clock of instruction {index} is not what follows")
        position = positions[unit]
        if unit == STORE:
            own.start(position, position + 1 if is_set else stored, table[of[index]])
        memories.touch(index, unit, position, clock, of[index], own)
        positions[unit] += 1
        done[unit] = clock
        clock = list(clock)
        clock[unit] = position + 1
        done[unit] = known[index] = clock
        for counter in pushes:
            tokens[counter].append(index)
            gone = bisect_left(popped[counter], clock[ENDS[counter][1]])
            need(
                len(tokens[counter]) - gone <= limit,
                f"instruction {index} may overflow the counter from {UNITS[ENDS[counter][0]]}",
            )
    need(all(next(rest, None) is None for rest in matches), "it matches more pops than there are")
    return count


class Fetch:
    """In-order dispatch to queues with room."""

    def __init__(self, program: list[Step], queues: Any, serial: bool) -> None:
        self.units = [unit for unit, *_ in program]
        self.room = [queues[name] for name in UNITS]
        self.serial, self.fetched, self.ended = serial, 0, 0
        self.waiting: list[list[int]] = [[], [], []]
        self.heads = [0, 0, 0]

    def start(self, index: int) -> None:
        while self.fetched < len(self.units) and (not self.serial or self.fetched <= self.ended):
            unit = self.units[self.fetched]
            if not self.room[unit]:
                break
            self.room[unit] -= 1
            self.waiting[unit].append(self.fetched)
            self.fetched += 1
        unit = self.units[index]
        ready = self.waiting[unit][self.heads[unit] : self.heads[unit] + 1]
        need(ready == [index], f"instruction {index} is not at the head of a queue when it should run")
        self.heads[unit] += 1
        self.room[unit] += 1
        self.ended += 1


class Own:
    """The order of the store unit's overlapping LOADs and STOREs."""

    def __init__(self) -> None:
        self.retired = self.read = self.loaded = self.used = 0
        self.fillers: dict[tuple[str, int], int] = {}
        self.residuals: list[tuple[int, int]] = []

    def start(self, position: int, retired: int, accesses: Any) -> None:
        """Process the next instruction. Its tokens prove that ``retired`` ones have retired."""
        self.retired = max(self.retired, retired)
        self.read = max(self.read, self.retired)
        for memory, writes, *what in accesses:
            if memory not in (*SHARED, "res"):  # for example par
                elements = [(memory, one) for low, high in pairs(what) for one in range(low, high)]
                if writes:
                    self.fillers.update(dict.fromkeys(elements, position))
                else:
                    self.read = max(self.read, *(self.fillers.get(one, -1) + 1 for one in elements))
            elif memory == "res" and writes:
                self.loaded += what[0]
                self.residuals.append((self.loaded, position))
            elif memory == "res":
                self.used += what[0]
                behind = bisect_left(self.residuals, (self.used, -1))
                need(behind < len(self.residuals), "more residuals are taken than loaded")
                self.read = max(self.read, self.residuals[behind][1] + 1)


class Memories:
    """The last accesses by memory, unit and kind."""

    def __init__(self, table: Any, span: list[int]) -> None:
        self.span = (span[0], span[1])
        boxes: tuple[Pairs, Pairs] = [self.span], []
        for memory, writes, *what in (one for entry in table for one in entry):
            whole = all(type(one) is int and one >= 0 for one in what)
            need(writes in (0, 1) and whole, "an access is not an access")
            if memory == "dram":
                boxes[writes].append(box(*what))
        union = merged(boxes[0]), merged(boxes[1])
        self.touches = [
            [
                (memory, writes, rows(*what) if memory == "dram" else pairs(what))
                for memory, writes, *what in entry
                if memory in SHARED and (memory != "dram" or meets(union[1 - writes], box(*what)))
            ]
            for entry in table
        ]
        far = [
            one for entry in self.touches for memory, _, found in entry if memory == "dram" for one in found
        ]
        self.bounds = sorted({bound for one in [*far, self.span] for bound in one})
        self.last: dict[tuple[str, int, int], list[int]] = {}

    def touch(self, index: int, unit: int, position: int, clock: list[int], which: int, own: Own) -> None:
        for memory, writes, found in self.touches[which]:
            ranges = found
            if memory == "dram":
                over = writes and meets([self.span], *found)
                need(not over, f"instruction {index} writes over the program")
                ranges = [(bisect_left(self.bounds, a), bisect_left(self.bounds, b)) for a, b in found]
            for other, wrote in ((unit, kind) for unit in (LOAD, COMPUTE, STORE) for kind in (0, 1)):
                if other != unit and (writes or wrote):
                    sure = clock[other]
                elif other == unit == STORE and memory == "dram" and writes != wrote:
                    sure = own.retired if wrote else own.read
                else:
                    continue
                last = self.last.get((memory, other, wrote), [])
                latest = max((max(last[low:high], default=-1) for low, high in ranges), default=-1)
                need(latest < sure, f"instruction {index} may race in {memory} with the {UNITS[other]} unit")
            mine = self.last.setdefault((memory, unit, writes), [])
            for low, high in ranges:
                if len(mine) < high:
                    mine.extend([-1] * (high - len(mine)))
                mine[low:high] = [position] * (high - low)


def box(start: int, count: int, size: int, stride: int) -> tuple[int, int]:
    need(0 < count < 1 << 16 and size > 0, "an access to DRAM has no rows, or more than there can be")
    return start, start + (count - 1) * stride + size


def rows(start: int, count: int, size: int, stride: int) -> Pairs:
    return merged([(start + row * stride, start + row * stride + size) for row in range(count)])


def pairs(flat: list[int]) -> Pairs:
    found = list(zip(flat[::2], flat[1::2], strict=True))
    need(all(0 <= low < high <= 1 << 16 for low, high in found), "a range is empty or beyond any scratchpad")
    return found


def merged(ranges: Pairs) -> Pairs:
    found: Pairs = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def meets(disjoint: Pairs, *ranges: tuple[int, int]) -> bool:
    """Whether a range overlaps one of the sorted ``disjoint`` ones."""
    for low, high in ranges:
        at = bisect_left(disjoint, (low + 1,)) - 1
        if any(begin < high and low < end for begin, end in disjoint[max(at, 0) : at + 2]):
            return True
    return False


def main(arguments: list[str]) -> int:
    """Return 0 if proven, 1 if not, 2 for a wrong file."""
    if len(arguments) != 2:
        print("usage: certificate_checker.py CERTIFICATE PROGRAM", file=sys.stderr)
        return 2
    try:
        certificate = certificate_of(arguments[0])
        code, manifest = program_of(arguments[1])
    except Unreadable as error:
        print(f"cannot be read: {error}", file=sys.stderr)
        return 2
    try:
        count = verify(certificate, code, manifest)
    except Refused as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    queued = ", ".join(f"{certificate['queues'][name]} in the queue of {name}" for name in UNITS)
    print(f"{count} instructions: no deadlock, no race: proven")
    print(f"{queued}; counters to {certificate['token_limit']}{'; serial' if certificate['serial'] else ''}")
    return 0


def certificate_of(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise Unreadable(f"{path!r}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path!r} is not a JSON file") from None
    if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise Unreadable(f"{path!r} is not a certificate of version {VERSION}; 'accel check' writes those")
    return found


def program_of(path: str) -> tuple[bytes, Any]:
    """Read instructions and manifest of a program, or of a network with one."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("program.json"))
            if manifest["format"] != "accel-network":
                return archive.read("instructions.bin"), manifest
            chains = [
                (number, step["chain"]) for number, step in enumerate(manifest["steps"]) if step["chain"]
            ]
            if len(chains) != 1:
                raise Unreadable(f"the network {path!r} has {len(chains)} programs; a certificate is of one")
            number, chain = chains[0]
            return archive.read(f"chains/{number}/instructions.bin"), chain["program"]
    except OSError as error:
        raise Unreadable(f"{path!r}: {error.strerror}") from None
    except (LookupError, TypeError, ValueError, RecursionError, zipfile.BadZipFile, zlib.error):
        raise Unreadable(f"{path!r} is not a program file, or is damaged") from None


def verify(certificate: Any, code: bytes, manifest: Any) -> int:
    """Check untrusted data, and compare initial tokens with the manifest."""
    try:
        begin = manifest["config"]["mem_base"] + manifest["code_offset"]
        need(certificate["span"] == [begin, begin + len(code)], "the program lies elsewhere")
        need(certificate["tokens"] == manifest["start"]["tokens"], "the program starts with other tokens")
        return check(certificate, code)
    except KeyError as error:
        raise Refused(f"it is malformed: {error} is missing") from None
    except (IndexError, TypeError, ValueError, AttributeError, OverflowError):
        raise Refused("it is malformed: something in it is not of the kind that it should be") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

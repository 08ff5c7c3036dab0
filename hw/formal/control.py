"""The control registers: AXI4-Lite's responses, and a status that stands until it is cleared."""

from amaranth.hdl import Cat

from accel.core.config import NAMED
from accel.hw.bus.control import Control
from accel.hw.formal.claims import Claims, Proof
from accel.hw.formal.protocol import steady


def registers() -> Claims:
    """The registers of a core that is running from a start to its end, and whose settings are its own."""
    component = Control(NAMED["tiny"])
    claims = Claims(component)
    inside = claims.inside
    steady(claims, "B", component.s_axi_bvalid, component.s_axi_bready, component.s_axi_bresp)
    read = Cat(component.s_axi_rdata, component.s_axi_rresp)
    steady(claims, "R", component.s_axi_rvalid, component.s_axi_rready, read)

    # One answer to each question.
    answers = {"b": ("aw", "w"), "r": ("ar",)}
    parts = {"aw": "address_there", "w": "data_there", "ar": "asked"}
    for answer, questions in answers.items():
        valid = getattr(component, f"s_axi_{answer}valid")
        answered = valid & getattr(component, f"s_axi_{answer}ready")
        for question in questions:
            asked = getattr(component, f"s_axi_{question}valid") & getattr(
                component, f"s_axi_{question}ready"
            )
            unanswered = claims.register(2, f"unanswered_{question}")
            claims.follows(unanswered, unanswered + asked - answered)
            name = f"{answer.upper()} answers {question.upper()}"
            claims.claim(name, ~valid | (unanswered != 0))
            claims.lemma(name, unanswered == inside.signal(parts[question]) + valid)

    claims.lemma("a read is asked for or answered", ~(inside.signal("asked") & component.s_axi_rvalid))

    # When runs begin and are given up.
    begun = component.running | component.start
    offering = claims.before(component.offering)
    claims.claim(
        "no run starts beside another, or on what the bus has not taken",
        ~component.start | (~claims.before(begun) & ~offering),
    )
    claims.claim(
        "a run is given up only while it drains, and the bus has taken everything",
        ~component.clear | ((~claims.before(begun) | claims.before(component.draining)) & ~offering),
    )

    # What a run left behind.
    done, interrupt = inside.signal("done"), inside.signal("interrupt")
    begins = component.start | component.clear
    claims.claim("done stands", ~claims.before(done) | done | begins)
    acknowledged = claims.before(inside.signal("interrupt_ones")[0])
    claims.claim("the interrupt stands", ~claims.before(interrupt) | interrupt | acknowledged | begins)
    return claims


PROOFS = (
    Proof(
        name="control registers",
        statement="responses wait, each has its question; a status stands; when runs begin and are given up",
        build=registers,
    ),
)

"""Proofs about AXI4-Lite responses and a run's status."""

from amaranth.hdl import Cat

from accel.core.config import NAMED
from accel.hw.bus.control_registers import Control
from accel.hw.formal.axi_rules import steady
from accel.hw.formal.claims import Claims, Proof


def registers() -> Claims:
    """Claims for complete runs, and constant settings."""
    component = Control(NAMED["tiny"])
    claims = Claims(component)
    inside = claims.inside
    steady(claims, "B", component.s_axi_bvalid, component.s_axi_bready, component.s_axi_bresp)
    read = Cat(component.s_axi_rdata, component.s_axi_rresp)
    steady(claims, "R", component.s_axi_rvalid, component.s_axi_rready, read)

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

    claims.lemma("a read is either requested or answered", ~(inside.signal("asked") & component.s_axi_rvalid))

    begun = component.running | component.start
    offering = claims.before(component.offering)
    claims.claim(
        "no run starts during another run or an offer",
        ~component.start | (~claims.before(begun) & ~offering),
    )
    claims.claim(
        "a run is abandoned only while it drains, without an offer",
        ~component.clear | ((~claims.before(begun) | claims.before(component.draining)) & ~offering),
    )

    done, interrupt = inside.signal("done"), inside.signal("interrupt")
    begins = component.start | component.clear
    claims.claim("done stays until software clears it", ~claims.before(done) | done | begins)
    acknowledged = claims.before(inside.signal("interrupt_ones")[0])
    claims.claim(
        "the interrupt stays until software clears it",
        ~claims.before(interrupt) | interrupt | acknowledged | begins,
    )
    return claims


PROOFS = (
    Proof(
        name="control registers",
        statement="responses match requests; the status holds; runs start and are abandoned correctly",
        build=registers,
    ),
)

"""All plans of a table as candidates, for wider searches."""

from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.plan_candidate import Candidate, PlanT
from accel.compiler.plans.plan_space import PlanSpace
from accel.compiler.plans.plan_table import PlanTable

_PREDICTED_TOGETHER = 4096
"""Plans that the model predicts at once, to limit memory."""


def all_candidates(space: PlanSpace[PlanT], table: PlanTable) -> list[Candidate[PlanT]]:
    """Return each plan once, in order, rated by predicted cycles."""
    rows = list(dict.fromkeys(table.to_rows()))
    found: list[Candidate[PlanT]] = []
    for begin in range(0, len(rows), _PREDICTED_TOGETHER):
        part = PlanTable.from_rows(rows[begin : begin + _PREDICTED_TOGETHER])
        predictions = space.predict(part).to_list()
        read = OperandTraffic(space.sizes(part)).read_bytes().tolist()
        found += [
            Candidate(plan=plan, prediction=one, read_bytes=int(nbytes), rating=one.cycles)
            for plan, one, nbytes in zip(space.to_plans(part), predictions, read, strict=True)
        ]
    return found

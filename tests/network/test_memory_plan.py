from accel.network.memory_plan import LiveRange, plan_memory


def test_tensors_with_disjoint_live_ranges_share_memory() -> None:
    ranges = [
        LiveRange(name="a", nbytes=100, first=0, last=1),
        LiveRange(name="b", nbytes=300, first=1, last=2),
        LiveRange(name="c", nbytes=90, first=2, last=3),
        LiveRange(name="d", nbytes=310, first=3, last=3),
    ]
    plan = plan_memory(ranges, 64)
    assert plan.bound == 128 + 320
    assert plan.nbytes == plan.bound
    for one in ranges:
        for other in ranges:
            if one is not other and one.overlaps(other):
                begin = max(plan.offsets[x.name] for x in (one, other))
                end = min(plan.offsets[x.name] + x.nbytes for x in (one, other))
                assert begin >= end


def test_an_empty_plan() -> None:
    assert (plan_memory([], 64).nbytes, plan_memory([], 64).bound) == (0, 0)

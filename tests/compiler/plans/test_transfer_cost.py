from accel.compiler.plans.transfer_cost import box_transfer
from accel.core.config import Config


def test_contiguous_rows_merge_and_boxes_need_an_instruction_each() -> None:
    config = Config(name="m", bus_bits=64, max_burst_beats=16)
    whole = box_transfer(config, 8, (2, 100), (10, 10), 10)
    assert (whole.beats, whole.instructions) == (200, 1)
    rows = box_transfer(config, 8, (1, 100), (10, 16), 8)
    assert (rows.beats, rows.instructions) == (80, 1)
    assert 10 <= rows.bursts < 10.2  # some rows cross the border of a page
    boxes = box_transfer(config, 8, (3, 1000), (10, 16), 8)
    assert (boxes.beats, boxes.instructions) == (240, 3)
    assert box_transfer(config, 8, (3, 160), (10, 16), 8).instructions == 1  # all rows are 16 apart
    assert box_transfer(config, 8, (1, 1), (0, 16), 8).instructions == 0

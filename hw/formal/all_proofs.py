"""The list of all proofs."""

from accel.hw.formal import (
    prove_alu,
    prove_bursts,
    prove_bus_timeout,
    prove_control_registers,
    prove_core,
    prove_load_bounds,
    prove_progress,
    prove_queue_entries,
    prove_queues,
    prove_read_port,
    prove_requantize_lanes,
    prove_res_occupancy,
    prove_termination,
    prove_tokens,
    prove_write_channels,
)

PROOFS = (
    *prove_queues.PROOFS,
    *prove_tokens.PROOFS,
    *prove_read_port.PROOFS,
    *prove_alu.PROOFS,
    *prove_bus_timeout.PROOFS,
    *prove_control_registers.PROOFS,
    *prove_queue_entries.PROOFS,
    *prove_bursts.PROOFS,
    *prove_load_bounds.PROOFS,
    *prove_write_channels.PROOFS,
    *prove_res_occupancy.PROOFS,
    *prove_requantize_lanes.PROOFS,
    *prove_termination.PROOFS,
    *prove_progress.PROOFS,
    *prove_core.PROOFS,
)

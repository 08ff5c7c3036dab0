"""Causes of cycles between two events."""

from enum import StrEnum


class Wait(StrEnum):
    """Why cycles pass between an event and the one that it depends on last."""

    STARTUP = "startup"
    ISSUE = "issue"
    QUEUE = "queue full"
    BUFFER = "buffer full"
    SERIAL = "serial"
    RAW = "RAW token"
    WAR = "WAR token"
    SLOTS = "slots"
    PIPELINE = "pipeline"
    EXCLUSIVE = "exclusive"
    IN_FLIGHT = "in flight"
    OVERLAP = "overlap"
    OPERAND_IN_USE = "par in use"
    OPERAND_LOADED = "par loaded"
    RES_FULL = "res full"
    RES_LOADED = "res loaded"
    REQUESTS = "requests"
    ARBITRATION = "arbitration"
    OUTSTANDING = "outstanding"
    READ_LATENCY = "read latency"
    READ_DATA = "read data"
    WRITE_BACK = "write-back"
    PADDING = "padding"
    WRITE_DATA = "write data"
    WRITE_LATENCY = "write latency"
    IN_ORDER = "in order"
    STOPPED = "stopped"

    @property
    def label(self) -> str:
        """Description for reports."""
        return _LABELS[self]


_LABELS = {
    Wait.STARTUP: "from the start of the run, or of a transfer, to its first request",
    Wait.ISSUE: "one instruction is dispatched per cycle, and starts one cycle later at the earliest",
    Wait.QUEUE: "the unit's queue is full until an instruction starts",
    Wait.BUFFER: "the fetch buffer is full until an instruction is dispatched",
    Wait.SERIAL: "serial mode: the previous instruction has to retire",
    Wait.RAW: "a RAW token is pushed in one cycle and can be popped in the next",
    Wait.WAR: "a WAR token is pushed in one cycle and can be popped in the next",
    Wait.SLOTS: "micro-ops, one per cycle; of MUL one per `mul_slots` cycles",
    Wait.PIPELINE: "the pipeline drains: compute up to its last write, store up to the bus",
    Wait.EXCLUSIVE: "a LOAD of the compute unit, a SET or a FINISH runs alone in its unit",
    Wait.IN_FLIGHT: "as many transfers are in flight as the unit allows",
    Wait.OVERLAP: "a LOAD of the same scratchpad elements has to retire",
    Wait.OPERAND_IN_USE: "parameters that a LOAD would overwrite are still in use",
    Wait.OPERAND_LOADED: "biases, scales and tables are loaded",
    Wait.RES_FULL: "res is full until a STORE retires",
    Wait.RES_LOADED: "residuals are loaded",
    Wait.REQUESTS: "one burst is requested per cycle",
    Wait.ARBITRATION: "the port grants another unit's burst",
    Wait.OUTSTANDING: "as many bursts are outstanding as the port allows",
    Wait.READ_LATENCY: "from the grant of a read to its first beat",
    Wait.READ_DATA: "beats on the read bus",
    Wait.WRITE_BACK: "from the bus into a scratchpad or the fetch buffer",
    Wait.PADDING: "pad words, one per cycle, in cycles without data",
    Wait.WRITE_DATA: "beats on the write bus, and the lanes that requantize them",
    Wait.WRITE_LATENCY: "from the last beat of a write to its response",
    Wait.IN_ORDER: "instructions of a unit retire in order, one per cycle",
    Wait.STOPPED: "from the last event to the error",
}

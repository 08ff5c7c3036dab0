"""The definition of the machine: configuration, instruction set, registers, timing, tokens and faults."""

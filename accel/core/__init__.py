"""The definition of the machine: configuration, instruction set, registers, timing rules, tokens and
faults."""

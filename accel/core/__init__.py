"""The machine's definition: configuration, instruction set, and what follows from them alone."""

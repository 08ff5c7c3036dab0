"""Building blocks of the units: instruction words, queues, loops, arithmetic, scratchpads."""

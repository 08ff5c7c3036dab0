"""What units are made of: instruction words, queues, loops, arithmetic, scratchpads."""

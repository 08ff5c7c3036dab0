"""From a tensorized nest to a program: instructions, tokens, addresses."""

"""Networks on a machine: passes over a graph, and the program that a whole network becomes."""

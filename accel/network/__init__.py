"""Networks on a machine: passes over a graph, and the program of a whole network."""

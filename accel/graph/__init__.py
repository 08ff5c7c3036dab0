"""Networks as graphs: typed tensors and operators, and what they compute, in numpy.

A graph is independent of machines and of the file that it came from.
"""

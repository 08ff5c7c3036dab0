"""Networks as graphs of tensors and operators, with their evaluation in numpy.

A graph does not depend on a machine, nor on the format of the file that it was read from.
"""

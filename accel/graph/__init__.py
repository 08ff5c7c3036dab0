"""Networks as graphs of tensors and operators, evaluated in numpy."""

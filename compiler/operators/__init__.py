"""The operators: each declared once, with its parameters, its plans and its place on the command line."""

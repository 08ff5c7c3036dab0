"""Operators: each is declared once, with its parameters, its planner and its command."""

"""Operators of networks as tensor expressions."""

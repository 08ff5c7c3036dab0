"""Packages: what firmware needs to run a network or a program, as files."""

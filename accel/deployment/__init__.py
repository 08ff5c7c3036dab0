"""Packages: the files that firmware needs to run a network or a program."""

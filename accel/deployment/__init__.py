"""Packages: files for firmware to run a network or a program."""

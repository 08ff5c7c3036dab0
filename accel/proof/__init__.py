"""The proof, before a program runs, that its tokens neither deadlock nor race."""

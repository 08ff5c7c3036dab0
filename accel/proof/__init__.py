"""The proof that tokens neither deadlock nor race."""

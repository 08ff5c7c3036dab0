"""The bus, and the control registers."""

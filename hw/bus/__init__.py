"""The bus: reads and writes in bursts, and the control registers."""

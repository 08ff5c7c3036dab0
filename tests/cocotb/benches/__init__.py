"""Benches, which run inside the simulators; :mod:`tests.cocotb.test_benches` starts them."""

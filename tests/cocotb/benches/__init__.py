"""What runs inside the simulators; :mod:`tests.cocotb.test_benches` starts it."""

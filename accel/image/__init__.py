"""The program file: what it holds, where that lies in DRAM, and what a run of it starts from."""

"""Lowering: fused nodes of a graph as workloads of the compiler, one module for each kind of operator."""

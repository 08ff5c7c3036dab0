"""Lowering: fused nodes of a graph as workloads of the compiler."""

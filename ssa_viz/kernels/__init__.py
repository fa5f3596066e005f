"""Fused forward and backward passes on CPU, compiled by numba: implementations of definitions in ssa_viz.scoring."""

"""Compiled functions, and their code on disk. Numba is loaded with `overlaps.compiled.functions`, not before."""

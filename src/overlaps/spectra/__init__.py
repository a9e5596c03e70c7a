"""Spectra of Hessians and gradient matrices: operators, eigenpairs, alignment."""

"""Alignment and local elasticity of unseen classes after one giant step of a two-layer network.

Two classes of sub-Gaussian inputs, a wide network with two fixed heads, one full-batch step of size η = n^α. The paper
writes β = Xᵀy/(n√N), which is b/√N here, and predicts both scores as polynomials in β·μ; its setups 1 and 2 are of this
network, 3 and 4 of deep ones on images. What is corrected is in the statements of the claims.
"""

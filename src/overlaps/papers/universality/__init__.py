"""Bae and Jeong 2024: how a student learns on a hidden manifold whose latent is a Gaussian mixture.

The teacher reads the latent C (D = 500), the student x = sign(Fᵀ C/√D) (N = 1000); C is standard normal, or a mixture
of m components of unit variance with means drawn from U[−α, α), as it is or standardised. What the text leaves open,
and what its conclusion hangs on, is whether the component is drawn once for a sample or anew for each coordinate.
"""

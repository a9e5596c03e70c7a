"""Worschech and Rosenow 2024: two-layer networks on inputs with a power-law spectrum.

Student (√M/K) Σ g(x_i), teacher (1/√M) Σ g(y_n), fields x = J·ξ/√N, one-pass SGD of rate η and time α = steps/N; inputs
of L eigenvalues ∝ l^-(1+β), each on N/L dimensions. Figures and claims keep the paper's parameters; formulas that the
paper prints otherwise than they follow from its equations are in `printed`, where the claims measure both.
"""

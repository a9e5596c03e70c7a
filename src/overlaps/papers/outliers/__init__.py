"""Ben Arous, Gheissari, Huang and Jagannath 2023: SGD aligns with the outlier eigenspaces of its Hessian.

Softmax regression on k Gaussian classes, and a two-layer ReLU network on the XOR mixture; one-pass SGD of step δ = 1/d,
noise of variance 1/λ, decay β. Here d is N, 1/λ the variance, classifiers x^a and first-layer rows W_i are w = W/√N,
and time is steps × δ. The decay is that of the loss L + (β/2)|x|², so that a step subtracts δβx, not βx as in (2.1).
"""

"""Panahi 2026: full-batch training on Gaussian mixtures, by a Gaussian comparison theorem.

A perceptron learns two classes by any linear first-order method. The paper proves that training and an alternative
process have the same law (Theorem 1), takes the limit of many samples, dynamic mean-field theory (Theorem 2), and
refines it at finite size (Algorithm 1). Its n, m, γ, θ, t and s are N, samples, ratio, W/√N, rate and momentum here.
"""

"""The papers behind a result, so that users can cite what they used."""

from __future__ import annotations

SAAD_SOLLA = "D. Saad and S. A. Solla, On-line learning in soft committee machines, Phys. Rev. E 52, 4225 (1995)."
BIEHL_SCHWARZE = "M. Biehl and H. Schwarze, Learning by on-line gradient descent, J. Phys. A 28, 643 (1995)."
GOLDT = (
    "S. Goldt, M. Advani, A. M. Saxe, F. Krzakala and L. Zdeborova, Dynamics of stochastic gradient descent for "
    "two-layer neural networks in the teacher-student setup, NeurIPS (2019)."
)
YOSHIDA_OKADA = (
    "Y. Yoshida and M. Okada, Data-dependence of plateau phenomenon in learning with neural network: statistical "
    "mechanical analysis, NeurIPS (2019)."
)
PLACKETT = "R. L. Plackett, A reduction formula for normal multivariate integrals, Biometrika 41, 351 (1954)."
CHO_SAUL = "Y. Cho and L. K. Saul, Kernel methods for deep learning, NeurIPS (2009)."
TREFETHEN = "L. N. Trefethen, Exactness of quadrature formulas, SIAM Review 64, 132 (2022)."
OWEN = "A. B. Owen, Scrambling Sobol' and Niederreiter-Xing points, Journal of Complexity 14, 466 (1998)."
EFFECTIVE = (
    "G. Ben Arous, R. Gheissari and A. Jagannath, High-dimensional limit theorems for SGD: effective dynamics and "
    "critical scaling, NeurIPS (2022)."
)
OUTLIERS = (
    "G. Ben Arous, R. Gheissari, J. Huang and A. Jagannath, High-dimensional SGD aligns with emerging outlier "
    "eigenspaces, ICLR (2024)."
)
MANIFOLD = (
    "S. Goldt, M. Mezard, F. Krzakala and L. Zdeborova, Modeling the influence of data structure on learning in neural "
    "networks: the hidden manifold model, Phys. Rev. X 10, 041044 (2020)."
)
UNIVERSALITY = (
    "J. Bae and H. Jeong, From empirical observations to universality: dynamics of deep learning with inputs built on "
    "Gaussian mixture, arXiv:2405.00642 (2024)."
)
DMFT = (
    "F. Mignacco, F. Krzakala, P. Urbani and L. Zdeborova, Dynamical mean-field theory for stochastic gradient descent "
    "in Gaussian mixture classification, NeurIPS (2020)."
)
COMPARISON = (
    "A. Panahi, A Gaussian comparison theorem for training dynamics in machine learning, arXiv:2603.09310 (2026)."
)
BOLTHAUSEN = (
    "E. Bolthausen, An iterative construction of solutions of the TAP equations for the Sherrington-Kirkpatrick model, "
    "Commun. Math. Phys. 325, 333 (2014)."
)
ONE_STEP = (
    "J. Ba, M. A. Erdogdu, T. Suzuki, Z. Wang, D. Wu and G. Yang, High-dimensional asymptotics of feature learning: "
    "how one gradient step improves the representation, NeurIPS (2022).",
    "B. Moniri, D. Lee, H. Hassani and E. Dobriban, A theory of non-linear feature learning with one gradient step in "
    "two-layer neural networks, ICML (2024).",
    "H. He and W. J. Su, The local elasticity of neural networks, arXiv:1910.06943 (2019).",
    "Emergence of alignment and local elasticity in two-layer neural networks, anonymous authors, under review.",
)
CAPONNETTO = (
    "A. Caponnetto and E. De Vito, Optimal rates for the regularized least-squares algorithm, Found. Comput. Math. 7, "
    "331 (2007)."
)
LOUART = (
    "C. Louart, Z. Liao and R. Couillet, A random matrix approach to neural networks, Ann. Appl. Probab. 28, 1190 "
    "(2018)."
)
EFRON = "B. Efron, Bootstrap methods: another look at the jackknife, Ann. Statist. 7, 1 (1979)."
ROWS_FORECAST = (BIEHL_SCHWARZE, EFRON, CAPONNETTO, LOUART)  # one pass, its bands, ridge regression
HAIRER = "E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, Springer (1993)."


def citations(
    scale: str,
    averages: str,
    levels: int,
    *,
    trained_readout: bool,
    means: bool,
    observed: bool,
    manifold: bool,
    full_batch: bool = False,
) -> list[str]:
    """References for the equations and numerical methods behind a result.

    Parameters
    ----------
    scale, averages: as in the attributes of a trajectory.
    levels: number of levels of the spectrum.
    trained_readout: whether the second layer learned.
    means: whether inputs have means.
    observed: whether spectra were recorded along training.
    manifold: whether the inputs are those of a hidden manifold.
    full_batch: whether training was on all samples at every step.
    """
    if full_batch:
        papers = [DMFT, COMPARISON]
        if scale == "meso":
            papers.append(BOLTHAUSEN)  # a Gaussian matrix conditioned on its products
        return papers + _averages(averages)
    papers = [SAAD_SOLLA, BIEHL_SCHWARZE]
    if levels > 1:
        papers.append(YOSHIDA_OKADA)
    if trained_readout:
        papers.append(GOLDT)
    if manifold:
        papers += [MANIFOLD, UNIVERSALITY] if means else [MANIFOLD]
    elif means:
        papers += [EFFECTIVE, OUTLIERS]
    if scale == "diffusion" and EFFECTIVE not in papers:
        papers.append(EFFECTIVE)
    if observed and OUTLIERS not in papers:
        papers.append(OUTLIERS)
    papers += _averages(averages)
    if scale == "macro":
        papers.append(HAIRER)
    return papers


def _averages(name: str) -> list[str]:
    """References for Gaussian averages by their name."""
    papers: list[str] = []
    if "relu" in name:
        papers += [CHO_SAUL, PLACKETT]
    if "tensor" in name:
        papers.append(TREFETHEN)
    if "Sobol" in name:
        papers.append(OWEN)
    return papers

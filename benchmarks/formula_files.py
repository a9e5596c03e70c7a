"""The files whose docstring states the formula that they compute, and the tests that are about each.

A file that finds a root, chooses a rule, steps through a loop or reads data states no formula, and is not listed.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

_ACTIVATIONS = ("contracts/activations", "averages")
_AVERAGES = ("averages", "shifted_averages", "average_errors")
_BLOCKS = ("population_spectra", "outliers", "covariance_spectra")
_KERNELS = ("dmft", "full_batch_batches", "fluctuations")
_LINEAR = ("long_stretches", "linear_budgets", "labelled_rows", "linear_laws")
_LOSSES = ("contracts/losses", "label_averages", "averages")
_MOTION = ("macro", "mixture_scales", "implicit", "diffusion", "moments", "update")
_NEURONS = ("giant_step_neurons", "giant_step_prediction")
_PLANS = ("optimise", "rows_forecast")
_SCHEDULES = ("contracts/schedules", "full_batch_schedules")

TESTS: dict[str, tuple[str, ...]] = {
    "algorithms.schedules.constant": _SCHEDULES,
    "algorithms.schedules.cosine": _SCHEDULES,
    "algorithms.schedules.definition": _SCHEDULES,
    "algorithms.schedules.exponential": _SCHEDULES,
    "algorithms.schedules.linear": _SCHEDULES,
    "algorithms.schedules.power": _SCHEDULES,
    "algorithms.schedules.steps": _SCHEDULES,
    "algorithms.schedules.warmup": _SCHEDULES,
    "algorithms.update": ("update", "full_batch_schedules", "full_batch_algorithms", "labelled_rows"),
    "averages.bivariate": ("shifted_orthants", "orthants", *_AVERAGES),
    "averages.closed": ("averages", "shifted_averages"),
    "averages.decisions": ("classified_rows",),
    "averages.erf": ("averages", "average_errors"),
    "averages.erf_shifted": _AVERAGES,
    "averages.frame": ("shifted_orthants", "orthants", *_AVERAGES),
    "averages.linear": ("averages", "average_errors"),
    "averages.orthant": ("orthants", "shifted_orthants", *_AVERAGES),
    "averages.orthant_shifted": ("shifted_orthants", *_AVERAGES),
    "averages.panels": ("averages", "average_errors", "label_averages", "relu_outputs"),
    "averages.quadrature": ("averages", "label_averages", "average_errors"),
    "averages.relu": ("averages", "average_errors"),
    "averages.relu_controls": ("relu_outputs", "average_errors"),
    "averages.relu_independent": ("relu_outputs", "average_errors"),
    "averages.relu_outputs": ("relu_outputs", "average_errors"),
    "averages.relu_shifted": _AVERAGES,
    "averages.shifted": _AVERAGES,
    "averages.square_quadrature": ("averages", "average_errors"),
    "averages.sum_averages": _AVERAGES,
    "averages.sums": _AVERAGES,
    "compare.discrepancy": ("discrepancy",),
    "compare.finite_size": ("comparison",),
    "compare.other_rows": ("fresh_rows",),
    "compare.verdict": ("comparison",),
    "compiled.normals": ("normals",),
    "data.class_moments": ("class_moments", "classified_rows"),
    "data.covariance": ("from_data", "real_samples"),
    "data.divergence": ("divergence",),
    "data.eigenbasis": ("full_batch_classes", "linear_laws"),
    "data.features": ("manifold",),
    "data.fit_bias": ("fresh_rows", "ridge", "rows_forecast"),
    "data.gaussian_moments": ("nonlinearity",),
    "data.nonlinearity": ("nonlinearity", "manifold"),
    "data.power_law": ("power_fit", "from_data"),
    "data.realised": ("manifold", "strong_mixture"),
    "data.spectrum": ("problem", "linear_laws", "from_data"),
    "data.square_roots": ("square_roots", "start", "full_batch_classes", "manifold"),
    "data.weighted_rows": ("fresh_rows",),
    "full_batch.batches": ("full_batch_batches",),
    "full_batch.comparison_processes": ("comparison_theorem",),
    "full_batch.continuation": ("comparison_theorem",),
    "full_batch.finite_size_fluctuations": ("fluctuations",),
    "full_batch.mean_field_kernels": _KERNELS,
    "full_batch.noisy_kernels": _KERNELS,
    "full_batch.paths": _KERNELS,
    "full_batch.task": ("full_batch", *_KERNELS, "full_batch_algorithms"),
    "full_batch.triangular_factors": _KERNELS,
    "giant_step.giant": ("giant_step", "giant_step_prediction"),
    "giant_step.hermite": ("hermite", "giant_step_prediction"),
    "giant_step.line": ("hermite", "giant_step_neurons"),
    "giant_step.neurons": _NEURONS,
    "giant_step.polynomials": ("giant_step_prediction", "giant_step"),
    "giant_step.prediction": _NEURONS,
    "giant_step.scores": ("giant_step_scores",),
    "giant_step.sphere": ("hermite", "giant_step_prediction"),
    "giant_step.unseen": ("giant_step_data",),
    "laws.asymptote": ("asymptote_laws",),
    "laws.contour": ("linear_laws",),
    "laws.features": ("linear_laws",),
    "laws.levels": ("linear_laws", "plateau_laws", "asymptote_laws"),
    "laws.linear": ("linear_laws",),
    "laws.plateaus": ("plateau_laws", "asymptote_laws"),
    "laws.powerlaw": (
        "power_laws",
        "linear_laws",
    ),
    "laws.ridge": ("ridge",),
    "laws.secular": ("linear_laws",),
    "laws.softmax": ("softmax_laws",),
    "laws.xor": ("xor_laws",),
    "network.activations.erf": _ACTIVATIONS,
    "network.activations.relu": _ACTIVATIONS,
    "network.activations.softplus": _ACTIVATIONS,
    "network.activations.tanh": _ACTIVATIONS,
    "network.losses.cross_entropy": _LOSSES,
    "network.losses.hinge": _LOSSES,
    "network.losses.logistic": _LOSSES,
    "network.losses.square": _LOSSES,
    "online.class_covariances": ("class_covariances", "classified_rows"),
    "online.classified_rows": ("classified_rows",),
    "online.component_levels": ("strong_mixture", "class_covariances", "mixture_scales"),
    "online.diffusion": ("diffusion",),
    "online.exact_mean": _LINEAR,
    "online.implicit": ("implicit",),
    "online.labelled_rows": ("labelled_rows", "linear_budgets"),
    "online.linear_step": _LINEAR,
    "online.long_stretches": _LINEAR,
    "online.meso": ("law", "mixture_scales", "update"),
    "online.moments": ("moments",),
    "online.motion": _MOTION,
    "online.multi_pass.theory": ("multi_pass", "progress"),
    "online.second_moments": ("long_stretches", "multi_pass", "linear_budgets", "progress"),
    "online.steps": ("manifold", "law", "real_samples", "update", "mixture_scales"),
    "online.strong_mixture": ("strong_mixture",),
    "online.weak_mixture": ("manifold", "strong_mixture"),
    "plan.linear_mean": _PLANS,
    "plan.objectives": _PLANS,
    "plan.rows_task": ("rows_forecast", "labelled_rows"),
    "plan.spectrum_forecast": ("cli_spectrum", "from_data", "power_fit"),
    "plan.velocity_mean": _PLANS,
    "problem.origin": ("mixture", "outliers"),
    "spectra.alignment": ("eigenpairs", "observer"),
    "spectra.covariance_law": ("covariance_spectra",),
    "spectra.edges": ("outliers", "covariance_spectra"),
    "spectra.empirical": ("empirical_spectra", "observer"),
    "spectra.given_fields": ("covariance_spectra",),
    "spectra.operators": ("empirical_spectra", "eigenpairs"),
    "spectra.outliers": ("outliers", "covariance_spectra"),
    "spectra.population": _BLOCKS,
    "spectra.population_block": _BLOCKS,
    "spectra.span": _BLOCKS,
    "spectra.weighted": ("outliers", "covariance_spectra"),
    "trajectory.fresh_rows": ("fresh_rows",),
}


LEFT_OUT = {
    *("examples", "plot", "to_dict", "__repr__", "_dataset", "record", "keep_overlaps"),  # they show and store
    *("check", "checked", "is_bounded", "common_readout", "_check_near", "_warn_of_domain", "serves"),  # they refuse
    *("coarser", "finer", "_rules", "_slabs", "_error_batch", "_combinations", "_points"),  # they say how fine
    *("attempts_with", "_attempts", "attempt", "rounding", "_steps", "_minimum", "_accuracy"),  # they search
}


def files(module: str) -> list[str]:
    """What may notice a mistake in a module, as pytest takes it: its own examples, and the tests about it."""
    own = f"src/overlaps/{module.replace('.', '/')}.py"
    examples = [own] if ">>>" in (ROOT / own).read_text(encoding="utf-8") else []
    return examples + [_path(name) for name in TESTS[module]]


def _path(name: str) -> str:
    folder, between, last = name.rpartition("/")
    return f"tests/{folder}{between}test_{last}.py"

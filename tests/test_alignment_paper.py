"""The paper on alignment and elasticity: claims that notice broken formulas, figures and their parts.

Runs have fixed seeds: what is tested of them is decided once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import overlaps as ov
from figures import made
from overlaps.papers import paper
from overlaps.papers.alignment import deep_claims, gradient_claims, images, printed
from overlaps.papers.alignment.deep_runs import Training
from overlaps.papers.alignment.model import Scale, setting

PAPER = paper("alignment")


def judged(name: str) -> str:
    return PAPER.claims[name].measure(True).verdict


def test_corrections_in_place_of_the_printed_formulas_hold_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts hang on the formulas: with the corrected ones in their place the same claims hold."""
    product, moment, features = ov.giant_step.hermite_product, printed.eq_72, gradient_claims.feature_errors
    corrected: dict[str, Callable[..., Any]] = {
        "eq_48": lambda j, k, uu, vv, uv: product(j, k, [[uu, uv], [uv, vv]]),
        "eq_49": lambda t, variance: np.exp(t**2 * variance / 2),
        "eq_61": product,
        "eq_69": lambda t, k, mu, eigenvalues: ov.giant_step.sphere_moment(t, k, mu, np.diag(eigenvalues)),
        "eq_65": lambda n, mean, variance, factor: float(ov.giant_step.hermite_mean(n, mean, variance)),
        "eq_72": lambda k, width, w: moment(k, width, 2.0),
        "unseen_points": lambda z, nu: z - np.outer(z @ nu, nu) / (nu @ nu) + nu,
        "rotation": lambda M, epsilon: np.eye(len(M)),
    }
    for name, right in corrected.items():
        monkeypatch.setattr(printed, name, right)

    def as_corrected(*args: Any, factors: tuple[float, ...] = (1.0,)) -> np.ndarray:
        return features(*args, factors=(1.0,) * len(factors))

    monkeypatch.setattr(gradient_claims, "feature_errors", as_corrected)
    claims = ("theorem-H.5", "eq-49", "theorem-H.10", "eqs-69-70", "eq-71", "eq-72", "unseen-generator", "rotations")
    for name in (*claims, "lemma-3.3"):
        assert judged(name) == "holds", name


def test_claims_notice_features_of_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a lower order falls as well, or the right one does not."""
    for low, high in ((-0.2, -0.2), (0.1, 0.1)):

        def errors(task: Any, orders: Any, seed: int, low: float = low, high: float = high) -> np.ndarray:
            return (1 + 0.01 * (seed % 3)) * float(task.count[0]) ** np.array([[low, high]])

        monkeypatch.setattr(gradient_claims, "feature_errors", errors)
        assert judged("windows") == "fails"


def test_claims_on_images_hang_on_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found, trained = deep_claims.metrics(True, None)["digits"], deep_claims.pairs(True, None)["digits"]
    small = found.assign(combined_p_value=1e-3 * found["combined_p_value"])
    monkeypatch.setattr(deep_claims, "metrics", lambda quick, data: {"digits": small})
    assert judged("setup-4") == "holds"
    monkeypatch.setattr(
        deep_claims, "metrics", lambda quick, data: {"digits": small.assign(correlation=-found["correlation"])}
    )
    assert judged("setup-4") == "cannot be told"
    monkeypatch.setattr(deep_claims, "power", lambda classes, runs: 0.9)  # as a hundred classes would have it
    assert judged("setup-4") == "fails"
    unlike = trained.assign(concordance=trained["concordance"] / 2)
    monkeypatch.setattr(deep_claims, "pairs", lambda quick, data: {"digits": unlike})
    assert judged("setup-3") == "fails"


def test_slopes_are_those_of_power_laws() -> None:
    sizes, noise = (100, 200, 400), np.random.default_rng(1).normal(1, 0.01, (3, 50))
    found = gradient_claims.slope(sizes, [n**-0.5 * x for n, x in zip(sizes, noise, strict=True)])
    assert abs(found.value + 0.5) < 4 * found.error and 5e-4 < found.error < 5e-3


def test_printed_generator_has_the_stated_variance() -> None:
    nu = np.array([0.5, 0.0, 0.0, 0.0])
    points = printed.unseen_points(np.random.default_rng(2).standard_normal((20_000, 4)), nu)
    assert points[:, 0].var() == pytest.approx((1 - 1 / 0.25) ** 2, rel=0.05)  # five standard errors


def test_theory_of_setup_2_depends_on_a_rotation_through_the_angle_alone() -> None:
    task = setting("sphere", 256)
    v = task.direction
    one = ov.giant_step.rotated(v, [1.0], seed=3)[0]
    cosine = float(one.mean @ v / (v @ v))
    beside = np.zeros(256)
    beside[:2] = np.sqrt(v @ v / 2) * np.array([1, -1])
    other = ov.giant_step.UnseenClass(cosine * v + np.sqrt(1 - cosine**2) * beside)
    both = ov.giant_step.solve(task, [one, other])
    for name in ("alignment", "elasticity"):
        np.testing.assert_allclose(*both.mean(name), rtol=1e-6)


def test_figures_are_all_there() -> None:
    expected = {"fig2", "fig3", "fig4", *(f"figK{i}" for i in range(1, 7)), "table1", "table3", "table4"}
    assert set(PAPER.figures) == expected
    assert {n for n, f in PAPER.figures.items() if f.takes_data} == {"fig4", "table1", "table3", "table4"}


def test_figures_show_runs_near_theory() -> None:
    """In units of the deviation of runs, 6 of them: at most four standard errors, or 5 % at this size."""
    data = made("alignment", "figK1")[1]
    for kind in ("ball", "truncated", "sphere"):
        for name in ("alignment", "elasticity"):
            runs, theory = data[f"{kind}_{name}"], data[f"{kind}_theory_{name}"].values
            error = runs.std("run", ddof=1).values / np.sqrt(6)
            assert (np.abs(runs.mean("run").values - theory) < 4 * error + 0.05 * theory + 0.01).all(), (kind, name)


def test_tables_hold_the_mean_of_their_runs() -> None:
    table = made("alignment", "table3")[1]
    assert [str(c) for c in table["column"].values][-5:] == [*(f"Recall@{k}" for k in (1, 2, 4, 8)), "avg. align"]
    one = table.sel(column="Recall@1")
    assert float(one["mean"]) == pytest.approx(float(one["seed"].mean()))
    p = table.sel(column="p-value")
    assert float(p["mean"]) == pytest.approx(ov.giant_step.combined(p["seed"].values))


def test_full_scales_are_those_of_the_paper() -> None:
    full = Scale.of(False)
    even = [e for e in full.e if abs(10 * e - round(10 * e)) < 1e-9]
    assert (full.size, full.runs, len(full.c), len(even)) == (2048, 30, 300, 19)
    assert "instead" not in full.note() and min(full.c) == 0
    assert "instead of" in Scale.of(True).note()
    assert Training.pair(False)[:3] == (20, 4, 48) and Training.metric(False)[:2] == (30, 4)


def test_images_are_read_by_what_a_folder_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for reader in ("read_cars196", "read_cub200", "read_folder"):
        monkeypatch.setattr(ov.deep, reader, lambda folder, size, reader=reader: (reader, folder.name))
    for name, file in (("cars196", "cars_annos.mat"), ("cub200", "image_class_labels.txt")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    cars, cub = ("read_cars196", "cars196"), ("read_cub200", "cub200")
    assert images.image_sets(tmp_path) == {"cars196": cars, "cub200": cub}
    assert images.image_sets(tmp_path / "cub200") == {"cub200": cub}
    (tmp_path / "mine").mkdir()
    assert images.image_sets(tmp_path / "mine") == {"mine": ("read_folder", "mine")}


def test_digits_have_their_classes() -> None:
    np.testing.assert_array_equal(ov.deep.digits().labels, load_digits().target)


def test_five_classes_do_not_show_what_a_hundred_do() -> None:
    """In 400 simulations elsewhere never, and in 91 %, with a standard error of .015."""
    assert deep_claims.power(5, 4) < 0.02
    assert abs(deep_claims.power(98, 4) - 0.91) < 0.08

"""The erf half of the power-law paper: figures are drawn, and claims notice broken formulas."""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from overlaps.papers import paper
from overlaps.papers.scaling import late_claims, plateau_claims, printed

PAPER = paper("scaling")


def test_all_twenty_figures_are_there() -> None:
    assert set(PAPER.figures) == {f"fig{n}" for n in range(1, 21)}


def test_the_issue_of_each_printed_formula_is_claimed() -> None:
    assert {"eq6", "eq11", "eq17", "eq91", "eq98", "eq99", "eq115"} <= PAPER.claims.keys()


@pytest.mark.parametrize(
    ("name", "law", "factor"),
    [("eq115", "plateau", 1.01), ("eq99", "plateau", 1.01), ("eq17", "decay_rates", 1.01)],
)
def test_claims_notice_a_wrong_law(name: str, law: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law one per cent off: the claim fails."""
    import dataclasses

    right = getattr(ov.laws, law)

    def wrong(*args):
        found = right(*args)
        if law == "decay_rates":
            return factor * found
        return dataclasses.replace(found, error=factor * found.error, prefactor=factor * found.prefactor)

    monkeypatch.setattr(ov.laws, law, wrong)
    assert PAPER.claims[name].measure(True).verdict == "fails"


def test_a_wrong_escape_time_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = printed.eq15
    monkeypatch.setattr(printed, "eq15", lambda *args: 1.01 * right(*args))
    assert PAPER.claims["escape-time"].measure(True).verdict == "fails"


def test_printed_forms_in_numbers() -> None:
    """M = 3, T = .5, D = .1: (99) gives .02294 for .001694, (115) .04524 for .03779."""
    assert printed.eq99(3, 0.5, 0.1) == pytest.approx(0.02294, rel=3e-4)
    assert printed.eq115(3, 0.5, 0.1) == pytest.approx(0.045241, rel=1e-4)
    assert printed.eq115(3, 2.0, 0.1) == pytest.approx(0.037351, rel=1e-4)
    # both are right where they should be: no overlaps between teachers, and T = 1
    net = ov.Committee(3, readout=3**-0.5)
    law = ov.laws.plateau(
        ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.GradientFlow(0.1))
    )
    assert printed.eq99(3, 1.0, 0.0) == pytest.approx(law.error, rel=1e-12)
    assert printed.eq115(3, 1.0, 0.0) == pytest.approx(law.prefactor, rel=1e-12)
    two = ov.Committee(2, readout=2**-0.5)
    assert printed.eq17_rates(2, 0.25) == pytest.approx(
        ov.laws.decay_rates(
            ov.Problem(data=ov.GaussianInputs(), teacher=two, student=two, algorithm=ov.GradientFlow(0.25))
        )[0]
    )


def test_students_that_leave_start_on_the_plateau() -> None:
    problem = plateau_claims._first_order(3, 5)
    T = plateau_claims.teacher(problem, overlap=0.05)
    error = ov.solve(problem, plateau_claims.leaving(problem, T), [1e-9]).data["error"]
    assert float(error[0, 0]) == pytest.approx(ov.laws.plateau(problem, T).error, rel=1e-8)


def test_slow_rate_is_that_of_a_linear_student() -> None:
    problem = plateau_claims._first_order(2, 4)
    slow = ov.laws.decay_rates(problem)[:, 0]
    np.testing.assert_allclose(slow, 2 * late_claims.slow_rate(problem) * problem.data.eigenvalues, rtol=1e-12)


def test_printed_formulas_in_numbers() -> None:
    """At M = 3 and 4, where a slip shows, from the text: (15), (98), (115), rates of (17)."""
    # π/.2 √4.9 7.1^1.5/(1.1·1.1)
    assert printed.eq15(3, 0.1, (1.0, 0.1), (1.2, 0.2)) == pytest.approx(543.651, abs=0.001)
    # 3.9·.6/(8π·6·(.5 − .01)^1.5)
    assert printed.eq115(3, 0.5, 0.1) == pytest.approx(0.045241, abs=1e-6)
    # T₂/T = 2; inside: 4/1.2·2 − 1 = 17/3, so that R = 2/√(4/1.2·17/3) and Q = 6/17
    assert printed.eq98(2, 4, (1.0, 0.2, 2.0)) == pytest.approx((0.460179, 0.352941), abs=1e-6)
    # a = 2√3·.25/(9π) times 2 ∓ √3
    assert printed.eq17_rates(3, 0.25) == pytest.approx((0.0082071, 0.1143104), abs=1e-6)

"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from dataclasses import replace

import overlaps as ov

from ..ledger import Patch
from . import formula_claims, late_claims, length_claims, linear_claims, misprint_claims, plateau_claims, printed
from .paper import PAPER


@PAPER.control("eq6", "the corrected (6) larger by a tenth")
def eq6(patch: Patch) -> None:
    patch(ov.laws, "linear_error", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("eq11", "(9) with its limits larger by a tenth")
def eq11(patch: Patch) -> None:
    patch(ov.laws, "gamma_error", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("eq91", "the closed form larger by a tenth")
def eq91(patch: Patch) -> None:
    def wrong(right, C, method):
        return (1.1 if method == "closed" else 1.0) * right(C, method)

    patch(formula_claims, "fourth", wrong)


@PAPER.control("bound", "a bound lower by a tenth")
def bound(patch: Patch) -> None:
    patch(printed, "worst_case", lambda right, *args, **more: 0.9 * right(*args, **more))


@PAPER.control("bound-late", "the bound at all times added to (49), which then holds")
def bound_late(patch: Patch) -> None:
    def wrong(right, spectrum, rate, times, *, distance):
        return right(spectrum, rate, times, distance=distance) + printed.worst_case(spectrum, distance=distance)

    patch(printed, "eq49", wrong)


@PAPER.control("variance-T", "teachers longer by a twentieth")
def variance_t(patch: Patch) -> None:
    patch(formula_claims, "teacher_moments", lambda right, *args: 1.1 * right(*args))


@PAPER.control("linear-transition", "an exponent less by a tenth")
def linear_transition(patch: Patch) -> None:
    patch(ov.laws, "time_exponent", lambda right, beta: 0.9 * right(beta))


@PAPER.control("time-exponent-linear", "an exponent larger by a tenth")
def time_exponent_linear(patch: Patch) -> None:
    patch(ov.laws, "time_exponent", lambda right, beta: 1.1 * right(beta))


@PAPER.control("feature-exponent", "an exponent larger by a tenth")
def feature_exponent(patch: Patch) -> None:
    patch(ov.laws, "feature_floor", lambda right, spectrum, n, **more: right(spectrum, n, **more) * n**-0.1)


@PAPER.control("eq96", "the corrected overlaps larger by a tenth")
def eq96(patch: Patch) -> None:
    patch(printed, "eq95", lambda right, T: (1.1 * right(T)[0], right(T)[1]))


@PAPER.control("eq84", "cross-covariances larger by a tenth")
def eq84(patch: Patch) -> None:
    def wrong(right, covariance, learnt, rest, reach):
        J, B = rest
        return right(covariance, learnt, (1.1 * J, 1.1 * B), reach)

    patch(printed, "eq84", wrong)


@PAPER.control("fig2-stability", "a mean of SGD larger by a tenth")
def fig2_stability(patch: Patch) -> None:
    patch(ov.laws, "finite_size_error", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("finite-rate", "the error of small rates larger by a tenth")
def finite_rate(patch: Patch) -> None:
    patch(ov.laws, "small_rate_error", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("eq88", "errors of SGD larger by a tenth")
def eq88(patch: Patch) -> None:
    patch(linear_claims, "gaussian_runs", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("data-spectrum", "the spectrum of digits as that of CIFAR-5m, which decides")
def data_spectrum(patch: Patch) -> None:
    patch(linear_claims, "images", lambda right: ("CIFAR-5m", right()[1]))


@PAPER.control("erf-transition", "a power of time larger by a fifth; a tenth is within the 15 % of the slope")
def erf_transition(patch: Patch) -> None:
    patch(late_claims, "specialised", lambda right, levels, beta, t: right(levels, beta, t) * t**-0.1)


@PAPER.control("time-exponent-erf", "an exponent larger by a tenth")
def time_exponent_erf(patch: Patch) -> None:
    patch(late_claims, "specialised", lambda right, levels, beta, t: right(levels, beta, t) * t**-0.05)


@PAPER.control("eq17", "rates larger by a tenth")
def eq17(patch: Patch) -> None:
    patch(ov.laws, "decay_rates", lambda right, problem: 1.1 * right(problem))


@PAPER.control("eqs-94-121-122", "rates larger by a tenth")
def eqs94_121_122(patch: Patch) -> None:
    patch(printed, "eq17_rates", lambda right, *args: tuple(1.1 * x for x in right(*args)))


@PAPER.control("eqs-94-121-122", "(121) with s counted 1.1 times")
def eq121(patch: Patch) -> None:
    patch(printed, "eq121", lambda right, units, r, s, q, c: right(units, r, 1.1 * s, q, c))


@PAPER.control("escape-time", "(15) with 3 for M + 1")
def escape_time(patch: Patch) -> None:
    def wrong(right, M, rate, first, second):
        (T, D), whole = first, right(M, rate, first, second)
        return whole * ((D + 3 * T + M) / (D + (M + 1) * T + M)) ** 1.5

    patch(printed, "eq15", wrong)


@PAPER.control("escape-law", "an error that is left as its power 1.1")
def escape_law(patch: Patch) -> None:
    def wrong(right, *args):
        law, times, r, lost = right(*args)
        return law, times, r, lost**1.1

    patch(plateau_claims, "growth", wrong)


@PAPER.control("eq115", "an error that is left a tenth sooner")
def eq115(patch: Patch) -> None:
    def wrong(right, *args):
        law, times, r, lost = right(*args)
        return law, times, r, 1.1 * lost

    patch(plateau_claims, "growth", wrong)


@PAPER.control("eq98", "higher moments larger by a tenth")
def eq98(patch: Patch) -> None:
    patch(
        plateau_claims,
        "moment",
        lambda right, result, name, order: (1.1 if order > 2 else 1) * right(result, name, order),
    )


@PAPER.control("eq99", "a plateau higher by a tenth")
def eq99(patch: Patch) -> None:
    def wrong(right, *args):
        law = right(*args)
        return replace(law, error=1.1 * law.error)

    patch(ov.laws, "plateau", wrong)


@PAPER.control("plateau-heights", "heights larger by a tenth")
def plateau_heights(patch: Patch) -> None:
    def wrong(right, *args):
        result, law, rest = right(*args)
        return result, replace(law, R=1.1 * law.R), rest

    patch(plateau_claims, "random_plateau", wrong)


@PAPER.control("plateau-shortens", "an escape slowed in proportion to the levels")
def plateau_shortens(patch: Patch) -> None:
    def wrong(right, problem, T):
        law, times, r, lost = right(problem, T)
        return law, times * problem.data.eigenvalues.size**2, r, lost

    patch(plateau_claims, "growth", wrong)


@PAPER.control("escape-scaling", "drawn teachers whose escape goes as M^2")
def escape_scaling(patch: Patch) -> None:
    patch(plateau_claims, "drawn_escapes", lambda right, M, *rest: right(M, *rest) * M**0.9)


@PAPER.control("escape-drawn", "drawn teachers whose escape is that of equal rows")
def escape_drawn(patch: Patch) -> None:
    patch(plateau_claims, "drawn_escapes", lambda right, M, *rest: right(M, *rest) * {6: 4, 40: 24}.get(M, 1))


@PAPER.control("plateau-length", "random parts that go as N^-0.55")
def plateau_length(patch: Patch) -> None:
    patch(length_claims, "of_size", lambda right, problem, start, factor: right(problem, start, factor**1.1))


@PAPER.control("eq95", "heights larger by a tenth")
def eq95(patch: Patch) -> None:
    patch(printed, "eq95", lambda right, T: (1.1 * right(T)[0], right(T)[1]))


@PAPER.control("plateau-start", "lengths in proportion to their power 1.1")
def plateau_start(patch: Patch) -> None:
    patch(length_claims, "end_of_plateau", lambda right, problem, scale, *rest: right(problem, scale**1.1, *rest))


@PAPER.control("linear-sizes", "equal numbers of units, for which the error is the same")
def linear_sizes(patch: Patch) -> None:
    def wrong(right, *args, students, teachers, **more):
        return right(*args, students=2, teachers=2, **more)

    patch(length_claims, "committee", wrong)


@PAPER.control("eq74-worst-case", "a bound lower by a tenth")
def eq74_worst_case(patch: Patch) -> None:
    patch(printed, "eq74_bound", lambda right, *args: 0.9 * right(*args))


@PAPER.control("eqs-18-19", "an error of the equations larger by a tenth")
def eqs18_19(patch: Patch) -> None:
    patch(misprint_claims, "committee_error", lambda right, *args: 1.1 * right(*args))


@PAPER.control("eqs-25-41", "moments of R larger by a tenth")
def eqs25_41(patch: Patch) -> None:
    def wrong(right, *args):
        values, found = right(*args)
        return values, found | {"R": 1.1 * found["R"]}

    patch(misprint_claims, "linear_moments", wrong)


@PAPER.control("eqs-71-78", "a sum from N_l + 2 on")
def eqs71_78(patch: Patch) -> None:
    patch(printed, "eq78", lambda right, spectrum, trained, decay: right(spectrum, trained + 2, decay))


@PAPER.control("eqs-100-114", "a growth slower by a tenth")
def eqs100_114(patch: Patch) -> None:
    def wrong(right, *args):
        law, times, r, lost = right(*args)
        return law, 1.1 * times, r, lost

    patch(misprint_claims, "growth", wrong)


@PAPER.control("worked-example", "half the escape times, and plateaus shorter by a fifth")
def worked_example(patch: Patch) -> None:
    patch(misprint_claims, "escape_and_length", lambda right, *args: (right(*args)[0] / 1.92, right(*args)[1] / 1.25))

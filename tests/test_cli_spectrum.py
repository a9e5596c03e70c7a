"""Forecasts and `overlaps spectrum`: the numbers against the solver, what is written, what is refused in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov
from command import command
from overlaps.data.digits import PATH, digits
from overlaps.plan.spectrum_forecast import Forecast
from printed import numbers


def spectrum(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    """Run `overlaps spectrum`."""
    return command(monkeypatch, capsys, "spectrum", *arguments)


# --- forecasts -------------------------------------------------------------------------------------------------------

SPECTRA: dict[str, Any] = {
    "digits": ov.Spectrum.from_data(digits()),
    "power law": ov.PowerLaw(60, 0.5),
    "three levels": ov.Spectrum([3.0, 1.0, 0.0], [0.2, 0.5, 0.3]),
    "isotropic": ov.Isotropic(),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_learning_curve_is_that_of_the_solver(name: str) -> None:
    """At infinite size, which a spectrum without a source has."""
    spectrum = ov.Spectrum(SPECTRA[name].eigenvalues, SPECTRA[name].fractions)
    found = ov.forecast(spectrum, rate=0.3)
    data = found.data
    assert found.size is None and "; error at infinite size:" in repr(found)
    inputs = ov.GaussianInputs(spectrum)
    problem = ov.Problem(
        data=inputs,
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(0.3),
    )
    zero = np.zeros((inputs.fractions.size, 1, 1))
    start = ov.Start.from_overlaps(problem, Q=zero, R=zero, T=zero + inputs.fractions[:, None, None])
    times = data["time"].values
    early = times < 50 * times[0]  # the solver's steps are short on the whole of it
    solved = ov.solve(problem, start, times[early]).data["error"].values[0]
    assert data["error"].values[early] == pytest.approx(solved, rel=1e-7)
    assert data["error"].values[-1] <= 1e-3 * data["error"].values[0]
    assert np.all(np.diff(data["error"]) < 0)


def mean_errors(omega: np.ndarray, rate: float, steps: int) -> np.ndarray:
    """Mean error after 0 to `steps` steps from zero weights, by the matrix E[d dᵀ] over Gaussian inputs, N = levels."""
    N, sigma = omega.size, np.diag(omega)
    moments, errors = np.eye(N), []
    for _ in range(steps + 1):
        SM = sigma @ moments
        errors.append(0.5 * np.trace(SM) / N)
        change = 2 * SM @ sigma + np.trace(SM) * sigma
        moments = moments - rate / N * (SM + SM.T) + (rate / N) ** 2 * change
    return np.array(errors)


FORTY = np.random.default_rng(0).standard_normal((4000, 40)) * np.sqrt(ov.PowerLaw(40, 0.5).eigenvalues)


@pytest.mark.parametrize("rate", [0.1, 1.2])
def test_learning_curve_of_data_is_the_mean_at_their_size(rate: float) -> None:
    """Below the critical rate 1.26 of these data; infinite size would be far off at the second rate."""
    spectrum = ov.Spectrum.from_data(FORTY)
    found = ov.forecast(spectrum, rate)
    times, error = found.data["time"].values, found.data["error"].values
    early = times < 50
    exact = mean_errors(np.array(spectrum.eigenvalues), rate, 2001)
    assert error[early] == pytest.approx(np.interp(times[early] * 40, np.arange(exact.size), exact), rel=1e-9)
    infinite = ov.laws.linear_error(spectrum, rate, times)
    assert (np.abs(error / infinite - 1).max() > 1) == (rate == 1.2)
    assert error[-1] <= 1e-3 * error[0]
    assert found.size == 40 and "; error as the exact mean at size 40:" in repr(found)
    assert ov.forecast(ov.Spectrum(spectrum.eigenvalues), rate, size=40).data["error"].values.tolist() == error.tolist()


def test_rates_at_which_the_mean_diverges_at_the_size_of_the_data() -> None:
    spectrum = ov.Spectrum.from_data(FORTY)
    errors = mean_errors(np.array(spectrum.eigenvalues), 1.5, 4000)
    assert errors[-1] > 10 * errors[2000] > 100 * errors[0]
    with pytest.raises(ov.InputError, match=r"^rate: 1.5 is at or above 1\.26\d+, where the mean error at size 40"):
        ov.forecast(spectrum, 1.5)
    assert ov.forecast(ov.Spectrum(spectrum.eigenvalues), 1.5).size is None


def test_sizes_that_take_too_long() -> None:
    found = ov.forecast(ov.PowerLaw(100, 0.5), size=10**7)
    assert "error at infinite size, since the exact mean at size 10000000 takes too long:" in repr(found)
    times = found.data["time"].values
    assert found.data["error"].values == pytest.approx(ov.laws.linear_error(found.spectrum, 0.1, times), rel=1e-6)


def test_close_to_the_critical_rate_the_curve_ends_early() -> None:
    """Nothing decays there; the work is bounded all the same."""
    spectrum = ov.Spectrum([2.0, 0.5, 0.5])
    limit = ov.laws.critical_rate(spectrum, 3)
    found = ov.forecast(spectrum, limit * (1 - 1e-12), size=3)
    assert np.all(np.isfinite(found.data["error"])) and found.data["error"].values[-1] > 1e-3


@pytest.mark.parametrize("name", SPECTRA)
def test_floors_and_plateaus(name: str) -> None:
    spectrum = SPECTRA[name]
    found = ov.forecast(spectrum, rate=0.1, units=3)
    omega = np.array(spectrum.eigenvalues) * np.array(spectrum.fractions)
    floor = found.data["floor"].values
    assert floor[0] == pytest.approx(omega.sum() / 2) and floor[-1] == 0 and np.all(np.diff(floor) <= 0)
    assert found.data["trained"].values[[0, -1]].tolist() == [0, len(spectrum.eigenvalues)]
    net = ov.Committee(3, "erf", 1 / np.sqrt(3))
    inputs = ov.GaussianInputs(spectrum)
    plateau = ov.laws.plateau(ov.Problem(data=inputs, teacher=net, student=net, algorithm=ov.GradientFlow(0.1)))
    at = found.data.sel(unit=3)
    assert float(at["plateau"]) == plateau.error and float(at["escape_time"]) == plateau.escape_time
    assert f"committee of 3 on 3 at infinite size: plateau at error {plateau.error:.4g}" in repr(found)


def test_participation() -> None:
    """The share of the dimensions among which the variance is equally shared, whatever they are called levels of."""
    for spectrum, share in (
        (ov.Spectrum([2.0] * 7), 1),
        (ov.Spectrum([5.0, 0.0, 0.0, 0.0]), 1 / 4),
        (ov.Spectrum([3.0, 3.0, 0.0, 0.0, 0.0]), 2 / 5),
        (ov.Spectrum([3.0, 0.0], [0.4, 0.6]), 2 / 5),
        (ov.Spectrum([100.0, 0.0], [0.01, 0.99]), 1 / 100),
        (ov.Isotropic(), 1),
    ):
        found = ov.forecast(spectrum)
        assert found.participation == pytest.approx(share)
        assert f"participation {share:g} of the dimensions\n" in repr(found)
    two = ov.Spectrum([4.0, 1.0], [0.25, 0.75])
    many = ov.Spectrum([4.0, 1.0, 1.0, 1.0])
    assert ov.forecast(two).participation == pytest.approx(ov.forecast(many).participation)


def test_many_units_are_thinned() -> None:
    units = ov.forecast(ov.Isotropic(), units=300).data["unit"].values
    assert units[:7].tolist() == [2, 3, 4, 5, 6, 7, 8] and units[-1] == 300 and units.size < 16


def local_slopes(found: Forecast) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times between the points of a curve, and the slope there, by differences of neighbours."""
    t, error = np.log(found.data["time"].values), np.log(found.data["error"].values)
    return np.exp((t[1:] + t[:-1]) / 2), np.diff(error) / np.diff(t)


def test_window_of_a_power_law() -> None:
    """Inside the window that the spectrum promises, and nowhere is the slope further off than was said."""
    found = ov.forecast(ov.PowerLaw(400, 1.0), rate=0.05)
    promised = ov.laws.window(ov.PowerLaw(400, 1.0), 0.05)
    assert found.fit is not None and found.fit.range == (1, 400)
    assert [found.fit.beta.value, found.fit.beta.low, found.fit.beta.high] == pytest.approx([1.0] * 3, abs=1e-6)
    assert "power law: error ~ time^-" in repr(found) and "within a fifth of it" in repr(found)
    assert found.window is not None and found.window.exponent == pytest.approx(0.5, rel=1e-6)
    assert promised.low <= found.window.low < found.window.high <= promised.high
    times, slopes = local_slopes(found)
    inside = (times > found.window.low) & (times < found.window.high)
    assert inside.sum() > 10 and np.abs(slopes[inside] / -0.5 - 1).max() <= 0.21


def test_a_power_law_that_the_curve_does_not_keep_is_not_printed() -> None:
    """The curve of these hundred levels bends all the way, though their spectrum is a power law."""
    found = ov.forecast(ov.PowerLaw(100, 0.5), rate=0.1)
    assert found.fit is not None and found.fit.is_power_law and found.window is None
    assert "power law: error" not in repr(found)
    said = re.search(r"no power law in time: it would be time\^(\S+), .* goes from (\S+) to (\S+),", repr(found))
    assert said is not None
    wanted, first, last = map(float, said.groups())
    assert wanted == pytest.approx(-1 / 3, abs=1e-3) and first == pytest.approx(wanted, abs=0.05) and last < -1.3
    times, slopes = local_slopes(found)
    assert slopes[times < 0.2].min() > -0.4 and slopes[times > 80].max() < -1.3


def test_window_of_a_power_law_that_begins_late() -> None:
    """Ten equal eigenvalues before it: the window begins where the first rank of the law is learned."""
    l = np.arange(1.0, 1001)
    omega = np.where(l < 10, 0.01, l**-2.0)
    found = ov.forecast(ov.Spectrum(omega / omega.mean()), rate=0.05)
    assert found.fit is not None and found.window is not None and found.fit.range[0] > 1
    assert f"ranks {found.fit.range[0]:g} to 1000 of 1000, the longest such range (the interval does not" in repr(found)
    first = (omega / omega.mean())[round(found.fit.range[0]) - 1]
    assert found.window.low > 1 / (2 * 0.05 * first)
    assert found.window.exponent == pytest.approx(0.5, abs=0.02)


def test_spectra_without_a_window() -> None:
    assert ov.forecast(SPECTRA["digits"]).window is None
    flat = ov.forecast(ov.PowerLaw(100, -0.5))
    assert flat.fit is not None and flat.fit.is_power_law and flat.window is None
    assert "no scaling law: too flat" in repr(flat) and flat.fit.beta.value == pytest.approx(-0.5, abs=1e-6)
    assert "no scaling law: too flat" in repr(ov.forecast(ov.Spectrum([1.0] * 50)))
    few = ov.forecast(ov.PowerLaw(5, 0.5))
    assert few.fit is None and few.window is None
    assert "power law: no fit; 5 levels above zero are less than a decade of ranks" in repr(few)
    gaps = ov.forecast(ov.Spectrum([9.0, 3.0, 1.0], [0.01, 0.19, 0.8]))
    assert "power law: no fit; rank: 3 points leave gaps" in repr(gaps) and gaps.unfitted.startswith("rank")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate": 2.0}, "rate: 2 is at or above critical_rate = 2"),
        ({"rate": -0.1}, "rate: expected a number above 0"),
        ({"units": 1}, "units: expected at least 2, got 1"),
        ({"units": 2.5}, "units: expected a whole number"),
        ({"data": [1.0, 2.0]}, "data: expected"),
        ({"data": ov.Spectrum([1e-300])}, "spectrum: "),
        ({"data": ov.PowerLaw(9, 1.0), "size": 8}, "size: 8 dimensions cannot hold 9 levels"),
        ({"size": 2.5}, "size: expected a whole number"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.forecast(**{"data": ov.Isotropic(), **change})


# --- the command -----------------------------------------------------------------------------------------------------


def test_digits(tmp_path: Path, monkeypatch, capsys) -> None:
    code, out, err = spectrum(monkeypatch, capsys, str(PATH), "--out", str(tmp_path / "out"), "--units", "10")
    assert code == 0, err
    spectrum_of_digits = ov.Spectrum.from_data(digits())
    assert "1797 samples x 61 columns (3 constant ones dropped), centred; eigenvalues in units of " in out
    values, fit = np.array(spectrum_of_digits.eigenvalues), spectrum_of_digits.power_law()
    share = values.sum() ** 2 / (values @ values) / 61
    form = "61 levels, {} to {}, participation {} of the dimensions, {} of 61"
    assert numbers(form, out) == pytest.approx([values.min(), values.max(), share, 61 * share], rel=1e-3)
    assert numbers("not a power law: slope drifts from {} to {}", out) == pytest.approx(fit.slopes, rel=1e-2)
    assert "committee of 10 on 10" in out
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"forecast.png", "forecast.nc"}
    assert str(tmp_path / "out" / "forecast.png") in out
    with xr.open_dataset(tmp_path / "out" / "forecast.nc", engine="h5netcdf") as data:
        assert data["eigenvalue"].values == pytest.approx(ov.Spectrum.from_data(digits()).eigenvalues, rel=1e-12)
        assert data["unit"].values.tolist() == list(range(2, 11))
        assert "1797 samples" in data.attrs["spectrum"] and data.attrs["rate"] == 0.1


def test_power_law_from_a_csv_file(tmp_path: Path, monkeypatch, capsys) -> None:
    rows = np.random.default_rng(0).standard_normal((400, 20)) * np.sqrt(ov.PowerLaw(20, 1.0).eigenvalues)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header=",".join("abcdefghijklmnopqrst"), comments="")
    code, out, err = spectrum(monkeypatch, capsys, str(tmp_path / "rows.csv"), "--rate", "0.2")
    assert code == 0, err
    assert "power law: eigenvalues fall as rank^-(1+β), β = " in out and "picture" not in out
    assert -1 < numbers("power law: error ~ time^{}", out)[0] < 0 and "few samples" not in out
    np.save(tmp_path / "few.npy", rows[:80])
    code, out, _ = spectrum(monkeypatch, capsys, str(tmp_path / "few.npy"))
    edges = [(1 - 0.5) ** 2, (1 + 0.5) ** 2]  # of Marchenko and Pastur, four samples to a column
    assert code == 0
    assert numbers("few samples: they spread equal eigenvalues by factors {} to {}", out) == pytest.approx(
        edges, rel=0.03
    )


def test_few_samples_spread_eigenvalues_as_said() -> None:
    """White data of four samples per column: all true eigenvalues are one, measured ones lie in (1 ± 1/2)²."""
    spectrum = ov.Spectrum.from_data(np.random.default_rng(1).standard_normal((1600, 400)))
    assert "few samples: they spread equal eigenvalues by factors 0.25 to 2.2;" in spectrum.source
    assert spectrum.eigenvalues[-1] == pytest.approx(0.25, rel=0.05)
    assert spectrum.eigenvalues[0] == pytest.approx(2.25, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.npy"], "source: no file nowhere.npy"),
        ([str(PATH), "--rate", "5"], "rate: 5 is at or above 1.7"),
        ([str(PATH), "--units", "1"], "units: expected at least 2"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, words, tmp_path, monkeypatch, capsys) -> None:
    code, _, err = spectrum(monkeypatch, capsys, *arguments, "--out", str(tmp_path / "out"))
    assert code == 2 and len(err.strip().splitlines()) == 1
    assert err.startswith("overlaps: ") and words in err
    assert not (tmp_path / "out").exists()


def test_a_frame_of_forty_columns(tmp_path: Path, monkeypatch, capsys) -> None:
    """Its header is no sample, and a rate between the critical ones of its size and of infinite size is refused."""
    header = ",".join(map(str, range(40)))
    np.savetxt(tmp_path / "rows.csv", FORTY, delimiter=",", fmt="%.17g", header=header, comments="")
    code, out, err = spectrum(monkeypatch, capsys, str(tmp_path / "rows.csv"), "--rate", "1.2")
    assert code == 0, err
    assert "4000 samples x 40 columns, header 0 to 39 skipped, centred" in out
    below = re.search(r"which must stay below (\S+); error as the exact mean at size 40:", out)
    assert below is not None and 1.2 < float(below[1]) < 1.5
    code, out, err = spectrum(monkeypatch, capsys, str(tmp_path / "rows.csv"), "--rate", "1.5")
    assert code == 2 and out == "" and f"rate: 1.5 is at or above {below[1]}" in err


def test_a_spec_may_name_data(tmp_path: Path, monkeypatch, capsys) -> None:
    """`overlaps run` on a data set: all scales, which say how they take the inputs, and the spec."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).exponential(size=(50, 4)))
    (tmp_path / "spec.toml").write_text(
        f'''
        data = {{kind = "Samples", source = "{tmp_path / "rows.npy"}"}}
        teacher = {{units = 1}}
        student = {{units = 1}}
        algorithm = {{rate = 0.5}}
        run = {{size = 4, last = 5.0, count = 4, meso_runs = 30, micro_runs = 30}}
        '''
    )
    spec, folder = str(tmp_path / "spec.toml"), str(tmp_path / "out")
    code, out, err = command(monkeypatch, capsys, "run", spec, "--out", folder)
    assert code == 0, err
    assert "taken as Gaussian" in out and "rows of 50 samples x 4 columns" in out
    assert 'kind = "Samples"' in (tmp_path / "out" / "spec.toml").read_text()
    assert ov.load(tmp_path / "out" / "micro.nc").problem is not None


def test_a_folder_that_exists_is_refused_before_anything_is_read(tmp_path, monkeypatch, capsys) -> None:
    code, out, err = spectrum(monkeypatch, capsys, "nowhere.npy", "--out", str(tmp_path))
    assert code == 2 and out == "" and "exists already" in err

"""Spectra of data sets: the same eigenvalues by other routes, whatever the data come from, and what is refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import overlaps as ov
from overlaps.data import table
from overlaps.data.covariance import principal_axes
from overlaps.data.digits import PATH, digits
from printed import numbers

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 5)) @ RNG.standard_normal((5, 5)) + [1.0, 2.0, 3.0, 4.0, 5.0]


def direct(X: np.ndarray, centre: bool = True) -> np.ndarray:
    """Eigenvalues by singular values, without a covariance matrix."""
    values = np.linalg.svd(X - X.mean(0) if centre else X, compute_uv=False) ** 2
    return values / values.mean()


def test_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    assert np.array_equal(digits(), load_digits(return_X_y=True)[0])


def test_spectrum_of_the_digits_is_that_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    measured = PCA(svd_solver="full").fit(digits()).explained_variance_[:61]
    spectrum = ov.Spectrum.from_data(digits())
    assert spectrum.eigenvalues == pytest.approx(measured / measured.mean(), rel=1e-8)
    assert np.mean(spectrum.eigenvalues) == pytest.approx(1, abs=1e-14)
    unit = measured.mean() * 1796 / 1797  # all samples there are, not an estimate from some of many
    assert spectrum.source == (
        f"1797 samples x 61 columns (3 constant ones dropped), centred; eigenvalues in units of {unit:.6g}"
    )
    assert spectrum.source in repr(spectrum)


def test_digits_have_no_power_law() -> None:
    """Their local slope steepens from a fifth to nearly five; so say all ranges of a decade."""
    fit = ov.Spectrum.from_data(digits()).power_law()
    assert not fit.is_power_law
    assert fit.range == (1, 61)
    assert fit.slopes == pytest.approx((-0.203, -4.83), rel=1e-2)
    assert repr(fit).startswith("not a power law: ")
    assert numbers("slope drifts from {} to {} over rank = 1 to 61", repr(fit)) == pytest.approx(fit.slopes, rel=1e-2)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("block", [1, 12, 10**6])
def test_blocks_of_any_height_give_the_eigenvalues_of_the_whole(centre: bool, block: int, monkeypatch) -> None:
    monkeypatch.setattr(table, "BLOCK", block)
    spectrum = ov.Spectrum.from_data(X, centre)
    assert spectrum.eigenvalues == pytest.approx(direct(X, centre), rel=1e-12)
    assert ("not centred" in spectrum.source) == (not centre)


@pytest.mark.parametrize("block", [1, 12, 10**6])
def test_large_means_cost_no_digits(block: int, monkeypatch) -> None:
    """E[x²] − E[x]² would have lost all of them: 1e9² is 1e18 times the variance."""
    monkeypatch.setattr(table, "BLOCK", block)
    shifted = X + 1e9
    exact = shifted - 1e9  # what the rounding of the data themselves leaves
    assert ov.Spectrum.from_data(shifted).eigenvalues == pytest.approx(direct(exact), rel=1e-6)


def sources(folder: Path) -> dict[str, Any]:
    np.save(folder / "a.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    np.savez(folder / "one.npz", anything=X)
    np.savez_compressed(folder / "named.npz", X=X, labels=np.arange(300))
    np.savetxt(folder / "plain.CSV", X, delimiter=",", fmt="%.17g")
    np.savetxt(folder / "header.csv", X, delimiter=",", fmt="%.17g", header='a,"b, c",d,e,f', comments="")
    (folder / "spaced.csv").write_bytes(
        b"\xef\xbb\xbf" + (folder / "header.csv").read_bytes().replace(b",", b" , ", 3).replace(b"\n", b"\r\n\r\n")
    )
    return {
        "list": X.tolist(),
        "str": str(folder / "a.npy"),
        "memory map": np.load(folder / "a.npy", mmap_mode="r"),
        **{name: folder / name for name in ("a.npy", "fortran.npy", "one.npz", "named.npz")},
        **{name: folder / name for name in ("plain.CSV", "header.csv", "spaced.csv")},
    }


def test_every_source_gives_the_same(tmp_path: Path) -> None:
    expected = principal_axes(X)
    for name, source in sources(tmp_path).items():
        axes = principal_axes(source)
        assert axes.digest == expected.digest, name
        assert ov.Spectrum.from_data(source) == ov.Spectrum(expected.eigenvalues), name
    assert principal_axes(X[:, ::-1]).digest != expected.digest
    assert principal_axes(X.reshape(-1)[:600].reshape(200, 3)).digest != principal_axes(X[:120]).digest


@pytest.mark.parametrize("kind", ["float32", "float16", "longdouble", "int64", "uint8", "bool"])
def test_any_real_type(kind: str) -> None:
    Y = np.abs(X * 10).clip(0, 255).astype(kind) if kind != "bool" else X.round() % 2 == 0
    assert ov.Spectrum.from_data(Y).eigenvalues == pytest.approx(direct(Y.astype(float)), rel=1e-12)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_headers_that_count_the_columns(first: int, columns: int, tmp_path: Path) -> None:
    header = ",".join(str(i) for i in range(first, first + columns))
    np.savetxt(tmp_path / "a.csv", X[:, :columns], delimiter=",", fmt="%.17g", header=header, comments="")
    expected, axes = principal_axes(X[:, :columns]), principal_axes(tmp_path / "a.csv")
    assert axes.digest == expected.digest and axes.count == 300
    assert f"columns, header {first} to {first + columns - 1} skipped, centred" in axes.source
    assert "header" not in expected.source
    assert "skipped" in repr(ov.Samples(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    "lines", ["0,1\n1,1\n3,2\n4,0\n", "1\n0\n1\n", "0,1,3\n2,5,1\n4,4,4\n1,0,9\n", "0.0,1.0,2.0\n" * 4]
)
def test_first_rows_that_may_be_samples_are_samples(lines: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(lines)
    assert sum(len(block) for block in table.blocks(tmp_path / "a.csv")) == lines.count("\n")
    assert table.count_header(tmp_path / "a.csv") == ""


@pytest.mark.parametrize(
    ("lines", "header"),
    [("age,size,2019\n30,1.5,2\n", True), ("a,7,kind\n1,2,yes\n", True), ("7,a\n1,b\n", False),
     ("NA,3\n1,2\n", False), ("3?,1\n1,2\n", False), ("?,1\n1,2\n", False), ("<b>,1\n1,2\n", True)],
)  # fmt: skip
def test_headers_with_numbers_among_their_names(lines: str, header: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(lines)
    assert table.beginning(tmp_path / "a.csv").header is header


@pytest.mark.parametrize("block", [1, 5, 10**6])
def test_headers_and_blocks(block: int, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(table, "BLOCK", block)
    for name, header in (("a", "0,1,2\n"), ("b", "p,q,r\n"), ("c", "")):
        (tmp_path / f"{name}.csv").write_text(header + "5,1,7\n2,2,2\n3,9,4\n")
        rows = np.concatenate(list(table.blocks(tmp_path / f"{name}.csv")))
        assert rows.tolist() == [[5, 1, 7], [2, 2, 2], [3, 9, 4]]


def test_frames_are_tables_too() -> None:
    pandas = pytest.importorskip("pandas")
    assert ov.Spectrum.from_data(pandas.DataFrame(X)) == ov.Spectrum.from_data(X)


@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_memory_does_not_grow_with_the_number_of_samples(suffix: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(table, "BLOCK", 2**13)  # 64 kB
    long = np.random.default_rng(1).standard_normal((60_000, 10)).astype(np.float32)
    path = tmp_path / f"long.{suffix}"
    np.save(path, long) if suffix == "npy" else np.savetxt(path, long[:20_000], delimiter=",", fmt="%.3f")
    table_bytes = path.stat().st_size
    tracemalloc.start()
    ov.Spectrum.from_data(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table_bytes > 1.2e6
    assert peak < 0.6e6


def test_constant_columns_are_dropped_and_counted() -> None:
    Y = np.insert(X, [0, 3], [[7.0, 0.0]], axis=1)
    spectrum = ov.Spectrum.from_data(Y)
    assert spectrum.eigenvalues == pytest.approx(direct(X), rel=1e-12)
    assert "300 samples x 5 columns (2 constant ones dropped), centred" in spectrum.source
    about_zero = ov.Spectrum.from_data(Y, centre=False)
    assert "300 samples x 6 columns (1 zero one dropped), not centred" in about_zero.source
    assert about_zero.eigenvalues == pytest.approx(direct(Y, centre=False)[:6] * 6 / 7, rel=1e-11)


def test_equal_columns_have_eigenvalue_zero_not_rounding() -> None:
    spectrum = ov.Spectrum.from_data(np.column_stack([X, X[:, 0], 2 * X[:, 1]]))
    assert spectrum.eigenvalues[-2:] == (0.0, 0.0) and spectrum.eigenvalues[-3] > 1e-4
    assert "2 eigenvalues zero within rounding" in spectrum.source
    fields = ov.Samples(np.column_stack([X, X[:, 0]])).rows
    assert np.all(fields[:, -1] == 0)


def test_one_column_is_one_level() -> None:
    assert ov.Spectrum.from_data(X[:, :1]) == ov.Spectrum([1.0])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(-60, 60), st.floats(-3, 3))
def test_rotation_scale_and_shift_change_nothing(seed: int, columns: int, power: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((40, columns)) * np.geomspace(1, 3, columns)
    rotation = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    moved = (Y @ rotation + shift) * 10.0**power
    assert ov.Spectrum.from_data(moved).eigenvalues == pytest.approx(ov.Spectrum.from_data(Y).eigenvalues, rel=1e-9)


def test_spectrum_round_trip_keeps_its_source() -> None:
    spectrum = ov.Spectrum.from_data(X)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum), teacher=ov.Committee(1), student=ov.Committee(1), algorithm=ov.OnlineSGD(0.1)
    )
    again = ov.Problem.from_toml(problem.to_toml())
    assert again == problem
    assert again.data.spectrum == spectrum == ov.Spectrum(spectrum.eigenvalues)
    assert isinstance(again.data.spectrum, ov.Spectrum) and again.data.spectrum.source == spectrum.source
    plain = ov.Problem(
        data=ov.GaussianInputs(ov.Spectrum([1.0])),
        teacher=ov.Committee(1),
        student=ov.Committee(1),
        algorithm=ov.OnlineSGD(0.1),
    )
    assert "source" not in plain.to_toml()


# --- refusals --------------------------------------------------------------------------------------------------------


def broken(row: int, column: int, value: float) -> np.ndarray:
    Y = X.copy()
    Y[row, column] = value
    return Y


REFUSED: dict[str, tuple[Any, str]] = {
    "fewer samples than columns": (X[:4], "4 samples of 5 columns have a singular covariance.*at least 6 samples.*50"),
    "as many samples as columns": (X[:5], "5 samples of 5 columns have a singular covariance"),
    "all constant": (np.ones((9, 3)), "all 3 columns are constant"),
    "NaN": (broken(17, 2, np.nan), r"row 17, column 2 \(counted from 0\) is nan, expected finite numbers"),
    "infinite": (broken(299, 4, -np.inf), "row 299, column 4 .* is -inf"),
    "overflow": (broken(3, 1, 1e200), r"1e\+200 in row 3, column 1 .*overflows when squared; divide"),
    "long double overflow": (broken(3, 1, 0).astype(np.longdouble) * np.longdouble("1e400"), "is (-?)inf"),
    "underflow": (X * 1e-200, "squares of these data underflow; multiply"),
    "complex": (X + 1j, "expected real numbers, got an array of complex128; its real and imaginary parts"),
    "text": ([["a", "b"]], "expected real numbers, got an array of str"),
    "object": (np.array([[1, None]]), "expected real numbers, got an array of object"),
    "dates": (np.zeros((3, 2), "datetime64[s]"), "expected real numbers, got an array of datetime64"),
    "ragged": ([[1.0], [1.0, 2.0]], "expected a table of numbers, samples x columns"),
    "one dimension": (np.ones(5), r"expected two dimensions, samples x columns, got shape \(5,\)"),
    "images": (np.ones((5, 8, 8)), r"got shape \(5, 8, 8\); reshape it, for instance images to one row each"),
    "a number": (3.0, "expected two dimensions"),
    "nothing": (None, "expected real numbers, got an array of object"),
    "no rows": (np.ones((0, 3)), r"expected samples and columns, got shape \(0, 3\)"),
    "no columns": (np.ones((3, 0)), r"expected samples and columns, got shape \(3, 0\)"),
    "masked": (np.ma.masked_equal([[1, 2], [3, 4], [5, 6]], 4), "has masked entries"),
    "wide": (np.ones((1, 20_001)), "covariance of 20001 columns has 3 GB; use at most 20000 columns"),
    "no file": ("nowhere.npy", "no file nowhere.npy"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("block", [10, 10**6])
def test_refusals(case: str, block: int, monkeypatch) -> None:
    monkeypatch.setattr(table, "BLOCK", block)
    source, words = REFUSED[case]
    for make in (ov.Spectrum.from_data, ov.Samples):
        with pytest.raises(ov.InputError, match=f"^source: .*{words}") as caught:
            make(source)
        assert "\n" not in str(caught.value)


def test_zero_columns_about_zero() -> None:
    with pytest.raises(ov.InputError, match="all 2 columns are zero"):
        ov.Spectrum.from_data(np.zeros((5, 2)), centre=False)


def test_centre_is_true_or_false() -> None:
    for make in (ov.Spectrum.from_data, ov.Samples):
        with pytest.raises(ov.InputError, match="centre: expected true or false, got 'yes'"):
            make(X, centre="yes")  # pyright: ignore[reportArgumentType]
    true: Any = np.True_
    assert ov.Spectrum.from_data(X, true) == ov.Spectrum.from_data(X)
    assert ov.Samples(X, centre=true).centre is True


FILES: dict[str, tuple[bytes, str]] = {
    "a.txt": (b"1,2", r"has the suffix '.txt'; .npy, .npz, .csv and .parquet are read"),
    "none": (b"1,2", r"has the suffix ''; "),
    "empty.npy": (b"", "cannot be read as .npy"),
    "garbage.npy": (b"garbage, not an array", "cannot be read as .npy"),
    "garbage.npz": (b"garbage, not an archive", "cannot be read as .npz"),
    "empty.csv": (b"", "expected samples, got none"),
    "blank.csv": (b"\n \n", "expected samples, got none"),
    "header.csv": (b"a,b\n", "expected samples, got none"),
    "text.csv": (
        b"a,b\n1,2\n\n3,x\n",
        r"line 4 of .*text.csv has 'x' in column 1 \(counted from 0\), expected a number",
    ),
    "gap.csv": (b"a,b\n1,2\n3,\n", r"line 3 of .*gap.csv has '' in column 1"),
    "index.csv": (
        b",0,1\n0,1.5,2.5\n",
        r"line 1 of .*index.csv looks like a header and its .* index; write .* without",
    ),
    "named.csv": (
        b",a,b\n0,1.5,2.5\n",
        r"line 1 of .*named.csv looks like a header and its first column like an index",
    ),
    "first gap.csv": (b",3,1\n0,1.5,2.5\n", r"line 1 of .*gap.csv has '' in column 0"),
    "count.csv": (b"0,1,2\n", "expected samples, got none"),
    "short.csv": (b"1,2\n3\n4,5\n", r"line 2 of .*short.csv has 1 columns, expected 2"),
    "long.csv": (b"1,2\n3,4,5\n", r"line 2 of .*long.csv has 3 columns, expected 2"),
    "all long.csv": (b"a,b\n3,4,5\n", r"line 2 of .*long.csv has 3 columns, expected 2"),
    "semicolons.csv": (b"1;2\n3;4\n", r"has no commas in line 1; separate its columns by commas"),
    "bytes.csv": (b"\xff\xfe\x00\x01", "cannot be read as text"),
    "nan.csv": (b"1,2\n3,nan\n", r"row 1, column 1 \(counted from 0\) is nan"),
    "underscores.csv": (b"1_0,2\n", r"underscores.csv cannot be read as numbers between lines 1 and 1"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    content, words = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ov.InputError, match=f"^source: .*{words}"):
        ov.Spectrum.from_data(tmp_path / name)


def test_archives_of_several_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=X, b=X)
    np.savez(tmp_path / "zero.npz")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    for name, words in (("two.npz", "holds a, b; expected one array, or one called X"), ("zero.npz", "holds nothing")):
        with pytest.raises(ov.InputError, match=words):
            ov.Spectrum.from_data(tmp_path / name)
    with pytest.raises(ov.InputError, match=r"objects.npy cannot be read as .npy"):
        ov.Spectrum.from_data(tmp_path / "objects.npy")
    with pytest.raises(ov.InputError, match="no file"):
        ov.Spectrum.from_data(tmp_path)
    assert ov.Spectrum.from_data(PATH) == ov.Spectrum.from_data(digits())


# --- dimensions of levels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "size", "expected"),
    [(4, 8, [2, 2, 2, 2]), (4, 10, [3, 3, 2, 2]), (3, 10, [4, 3, 3]), (7, 7, [1] * 7)],
)
def test_dimensions_of_equal_levels(levels: int, size: int, expected: list[int]) -> None:
    """N/L not whole: the remainder goes to the first levels, one each."""
    assert ov.GaussianInputs(ov.PowerLaw(levels, 0.5)).dimensions(size).tolist() == expected


def test_more_levels_than_dimensions() -> None:
    with pytest.raises(ov.InputError, match="size: 6 dimensions cannot hold 7 levels; use size >= 7"):
        ov.GaussianInputs(ov.PowerLaw(7, 0.5)).dimensions(6)


def test_rare_levels_keep_a_dimension() -> None:
    """Largest remainders: 0.04, 5.6 and 14.36 of 20 dimensions."""
    inputs = ov.GaussianInputs(ov.Spectrum([1.0, 1.0, 1.0], [0.002, 0.28, 0.718]))
    assert inputs.dimensions(20).tolist() == [1, 5, 14]

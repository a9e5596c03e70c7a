"""Every paper: complete, its claims as recorded, its figures drawn, of finite numbers, and each showing a claim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

from figures import made, words
from overlaps.papers import broken, kept_runs, papers
from overlaps.papers.ledger import UNDECIDED, VERDICTS

CLAIMS = [(handle, name) for handle, paper in papers().items() for name in paper.claims]
FIGURES = [(handle, name) for handle, paper in papers().items() for name in paper.figures]


@pytest.mark.parametrize("handle", papers())
def test_papers_are_complete(handle: str) -> None:
    paper = papers()[handle]
    assert paper.title and paper.citation and paper.figures and paper.claims


@pytest.mark.parametrize(("handle", "name"), CLAIMS, ids=lambda part: part)
def test_claims_are_as_recorded(handle: str, name: str) -> None:
    """And come out otherwise with a wrong formula, which is compared with the same runs."""
    paper = papers()[handle]
    claim = paper.claims[name]
    assert claim.where and claim.statement and claim.expected in VERDICTS
    assert claim.method.endswith("."), "the docstring of its function says in one sentence how it is measured"
    assert paper.controls.get(name), "every claim has a wrong formula that it notices, in the controls of its paper"
    with kept_runs():
        measured = claim.measure(True)
        assert measured.verdict in (claim.expected, UNDECIDED), measured
        assert np.isfinite(measured.value) and 0 <= measured.error < np.inf
        for control in paper.controls[name]:
            noticed = broken(paper, name, control)
            assert noticed.verdict not in (claim.expected, UNDECIDED), (control.words, noticed)


@pytest.mark.parametrize(("handle", "name"), FIGURES, ids=lambda part: part)
def test_figures_show_claims(handle: str, name: str) -> None:
    """What a figure is drawn for is a claim of its paper."""
    paper = papers()[handle]
    figure = paper.figures[name]
    assert figure.caption and not figure.caption.endswith(".")  # the full stop is the gallery's
    assert figure.claims and set(figure.claims) <= set(paper.claims)


def bare(ax: Axes) -> bool:
    """Whether an axis that is drawn does not say what it shows; a colour bar says it on one side."""
    labels = ax.get_xlabel(), ax.get_ylabel()
    return ax.axison and not (any(labels) if ax.get_label() == "<colorbar>" else all(labels))


@pytest.mark.parametrize(("handle", "name"), FIGURES, ids=lambda part: part)
def test_figures_are_drawn(handle: str, name: str, tmp_path: Path) -> None:
    """Finite numbers that survive a file, axes with labels, a title, and on the figure what a quick one leaves out."""
    picture, data = made(handle, name)
    assert data.data_vars and data.attrs
    for variable in data.variables.values():
        assert variable.dtype.kind not in "fc" or np.isfinite(variable.values).all(), variable
    said = [bool(v.attrs.get("long_name") or v.attrs.get("units")) for v in data.data_vars.values()]
    assert all(said) or not any(said), "where some variables say what they are, all do"
    assert picture.axes and not any(bare(ax) for ax in picture.axes)
    assert picture.get_suptitle() or all(ax.get_title() for ax in picture.axes if ax.axison)
    assert "instead of" not in data.attrs.get("parameters", "") or "instead of" in words(picture)
    picture.canvas.draw()
    data.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as read:
        xr.testing.assert_equal(read.load(), data)

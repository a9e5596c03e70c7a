"""Hessians, their models and their outliers."""

from __future__ import annotations

from dataclasses import replace

import overlaps as ov

from ..problems import (
    LABELS,
    NET,
    RNG,
    ROUND,
    ROUND_START,
    ROWS,
    START,
    Case,
    P,
)

BATCH = ov.spectra.Batch.draw(P, START, 30, seed=1)
SQUARE = RNG.normal(size=(6, 6))
BOTH = replace(P, student=replace(NET, train_readout=True), algorithm=ov.OnlineSGD(0.3, 0.1))
OBSERVED = ov.train(
    BOTH, ov.draw(BOTH, 20), [0.0, 0.5, 1.0], observe=ov.spectra.Observer(count=2, samples=20), progress=False
)
CASES: dict[str, Case] = {
    "Batch": (ov.spectra.Batch, {"inputs": ROWS, "labels": LABELS}),
    "Batch.draw": (ov.spectra.Batch.draw, {"problem": P, "start": START, "samples": 10, "seed": 0}),
    "hessian": (ov.spectra.hessian, {"problem": P, "start": START, "batch": BATCH}),
    "gradient_matrix": (ov.spectra.gradient_matrix, {"problem": P, "start": START, "batch": BATCH}),
    "population": (ov.spectra.population, {"problem": ROUND, "start": ROUND_START, "kind": "hessian"}),
    "readout_block": (ov.spectra.readout_block, {"problem": ROUND, "start": ROUND_START, "kind": "hessian"}),
    "bbp": (ov.spectra.bbp, {"spike": 2.0, "ratio": 0.5}),
    "mp_edge": (ov.spectra.mp_edge, {"variance": 1.0, "ratio": 0.5}),
    "count_outliers": (ov.spectra.count_outliers, {"values": [1.0, 2.0, 5.0], "edge": 3.0, "margin": 0.1}),
    "outlier_rank": (
        ov.spectra.outlier_rank,
        {"values": [1.0, 5.0], "bulk": 1.0, "factor": 3.0, "share": 0.2},
    ),
    "eigenpairs": (
        ov.spectra.eigenpairs,
        {"A": SQUARE + SQUARE.T, "count": 2, "tolerance": 1e-9, "start": None, "seed": 0},
    ),
    "gram_eigenpairs": (ov.spectra.gram_eigenpairs, {"F": SQUARE, "count": 2, "tolerance": 1e-9}),
    "subspace_alignment": (ov.spectra.subspace_alignment, {"v": SQUARE[0], "subspace": SQUARE[:, :2]}),
    "distance_from": (ov.spectra.distance_from, {"A": SQUARE + SQUARE.T, "subspace": SQUARE[:, :2]}),
    "lives_in": (ov.spectra.lives_in, {"what": SQUARE + SQUARE.T, "subspace": SQUARE[:, :2], "error": 0.1}),
    "StoppingRule": (ov.spectra.StoppingRule, {"rank": 2, "patience": 8.0}),
    "Observer": (
        ov.spectra.Observer,
        {
            "kinds": "hessian",
            "blocks": [0],
            "count": 2,
            "samples": 10,
            "source": "test",
            "times": [1.0],
            "tolerance": 0.01,
            "keep_weights": False,
        },
    ),
    "SymmetricOperator.from_matrix": (
        ov.spectra.SymmetricOperator.from_matrix,
        {"matrix": SQUARE + SQUARE.T, "name": "mine"},
    ),
    "SymmetricOperator.from_factor": (
        ov.spectra.SymmetricOperator.from_factor,
        {"factor": SQUARE, "name": "mine"},
    ),
    "bulk_edge": (
        ov.spectra.bulk_edge,
        {"problem": ROUND, "start": ROUND_START, "samples": 100, "block": (0, 0), "kind": "hessian"},
    ),
    "predicted_outliers": (
        ov.spectra.predicted_outliers,
        {"problem": ROUND, "start": ROUND_START, "samples": 100, "block": (0, 0), "kind": "hessian"},
    ),
    "visibility": (
        ov.spectra.visibility,
        {"problem": ROUND, "start": ROUND_START, "samples": 100, "count": 1, "block": (0, 0), "kind": "hessian"},
    ),
    "stop_time": (ov.spectra.stop_time, {"trajectory": OBSERVED, "rank": 1, "kind": "hessian", "patience": 8.0}),
}

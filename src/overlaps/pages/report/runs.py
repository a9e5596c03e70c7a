"""The report on `overlaps run`: trajectories at all scales, and whether they agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...interface import files
from ...interface.errors import InputError
from ...plot import interactive
from ...trajectory.dataset import Trajectory, load
from .document import Document, Shown, Table

SCALES = ("macro", "meso", "micro")
TERMS = {"macro": "theory", "meso": "chain", "micro": "training"}
MEANINGS = {
    "macro": "Macro is theory, at infinite size.",
    "meso": "Meso is the chain of overlaps: what training is in law, without its weights.",
    "micro": "Micro is training itself, step by step.",
}
WORDS = {
    "agrees": "{} agree",
    "finite-size": "{} differ, by what vanishes as one over the size",
    "disagrees": "{} differ, and not by an effect of the size alone",
    "underpowered": "whether {} agree these runs cannot tell",
}
PACKAGES = ("overlaps", "numpy", "scipy", "numba")  # whose versions results store
MOST = 16  # entries of a variable that is drawn
NAMES = {
    "error": "generalisation error",
    "training_error": "training error",
    "R": "overlaps of student and teacher",
    "m": "overlaps of student and means",
    "Q": "overlaps of the students",
    "v": "readout",
}


def of_run(folder: Path) -> Document:
    """Read what `overlaps run` has written; a run that was not finished has no verdict yet, and is refused."""
    try:
        verdicts = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
        spec = (folder / "spec.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InputError(f"report: the run in {folder} is not finished; the same `overlaps run` goes on") from None
    results = {name: load(folder / f"{name}.nc") for name in SCALES if (folder / f"{name}.nc").exists()}
    first = next(iter(results.values()))
    about = first.data.attrs
    networks = "" if first.problem is None else f" ({first.problem.describe_networks()})"
    sizes = ", ".join(
        f"{r.scale} at {'infinite size' if r.scale == 'macro' else f'N = {r.size}'}" for r in results.values()
    )
    figures = [
        Shown(
            words[0].upper() + words[1:],
            "Lines: means over runs; bands: one standard deviation over runs.",
            interactive.trajectory(results, name),
        )
        for name, words in NAMES.items()
        if name in first.variables and _is_drawn(first, name)
    ]
    for pair, verdict in verdicts.items():
        table, _ = files.read_dataset("report", folder / f"points {pair}.nc")
        theory, simulation = (results[name] for name in pair.split(" against "))
        _, scores = interactive.comparison(theory, simulation, table, verdict["verdict"])
        caption = "A point is an entry at a time; about one in twenty lies beyond the dotted lines by chance."
        figures.append(Shown(f"{pair}: deviations", caption, scores))
    return Document(
        title="How this network learns: theory and training",
        question=f"What do theory and training say of {about['inputs']} inputs{networks}, and do they agree? {sizes}.",
        terms=" ".join(MEANINGS[name] for name in results),
        verdict=_headline(verdicts, list(results)),
        answer=[_answer(pair, verdict) for pair, verdict in verdicts.items()],
        figures=figures,
        tables=[*_largest(folder, verdicts), _ends(results)],
        how=[_sentence("; ".join(line.strip() for line in repr(r).splitlines())) for r in results.values()],
        command=f"overlaps run spec.toml --out {folder.name or 'DIR'}",
        versions={name: str(about[name]) for name in PACKAGES if name in about},
        citations=list(dict.fromkeys(paper for r in results.values() for paper in r.citations())),
        spec=spec,
    )


def _size(result: Trajectory) -> str:
    return "infinite size" if result.scale == "macro" else f"N = {result.size}"


def _answer(pair: str, verdict: dict[str, Any]) -> str:
    told = WORDS[verdict["verdict"]].format(_names(pair.split(" against ")))
    return f"{pair}: {told}. {_sentence(verdict['reason'])}"


def _names(scales: list[str]) -> str:
    """Scales in words: "theory, chain and training"."""
    words = [TERMS[name] for name in scales]
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _is_drawn(result: Trajectory, name: str) -> bool:
    """Whether a variable evolves, and has few enough entries to be told apart."""
    values = result.data[name].values
    return int(np.prod(values.shape[2:])) <= MOST and bool(np.ptp(values, axis=1).any())


def _headline(verdicts: dict[str, Any], scales: list[str]) -> str:
    words = {v["verdict"] for v in verdicts.values()}
    if not words:
        return "Theory alone: there was nothing to compare it with."
    if words == {"agrees", "underpowered"}:
        return _sentence(f"{_names(scales)} agree where the runs can tell")
    worst = next(word for word in ("disagrees", "finite-size", "underpowered", "agrees") if word in words)
    return _sentence(WORDS[worst].format(_names(scales)))


def _sentence(text: str) -> str:
    text = text.strip()
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _ends(results: dict[str, Trajectory]) -> Table:
    rows = []
    for r in results.values():
        ends = r.data["error"].isel(time=-1).values
        bar = f" ± {ends.std(ddof=1) / np.sqrt(ends.size):.1g}" if ends.size > 1 else ""
        size = "infinite" if r.scale == "macro" else str(r.size)
        rows.append(
            [r.scale, size, str(r.runs), f"{r.time[-1]:g}", f"{ends.mean():.4g}{bar}", str(r.data.attrs["cost"])]
        )
    columns = ["scale", "size", "runs", f"last time ({next(iter(results.values())).unit})", "error there", "cost"]
    return Table("Error at the end", columns, rows, "Mean over runs ± its standard error.")


def _largest(folder: Path, verdicts: dict[str, Any]) -> list[Table]:
    """The largest deviation of each variable, of each comparison."""
    rows = []
    for pair in verdicts:
        table, _ = files.read_dataset("report", folder / f"points {pair}.nc")
        rows += [[pair, *_worst(table, name)] for name in dict.fromkeys(table["variable"].values.tolist())]
    columns = ["comparison", "variable", "time", "deviation", "standard error", "z", "corrected p"]
    note = "Where z is largest; p is corrected for the number of points that were compared."
    return [Table("Largest deviations", columns, rows, note)] if rows else []


def _worst(table: xr.Dataset, name: str) -> list[str]:
    part = table.isel(point=np.flatnonzero(table["variable"].values == name))
    at = part.isel(point=int(np.abs(part["z"].values).argmax()))
    numbers = (f"{float(at[key]):.3g}" for key in ("time", "deviation", "standard_error", "z", "p_adjusted"))
    return [f"{name}{at['entry'].values}", *numbers]

"""Public functions and classes by family, each with arguments that it takes."""

from ..problems import Case
from . import data, deep, full_batch, giant_step, laws, overlaps, results, spectra, sweep

FAMILIES: dict[str, dict[str, Case]] = {
    "overlaps": overlaps.CASES,
    "data": data.CASES,
    "laws": laws.CASES,
    "spectra": spectra.CASES,
    "full_batch": full_batch.CASES,
    "giant_step": giant_step.CASES,
    "deep": deep.CASES,
    "sweep": sweep.CASES,
    "results": results.CASES,
}

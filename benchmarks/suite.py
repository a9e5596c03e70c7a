"""All benchmarks, in the order they are reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from re import DOTALL, sub

from . import (
    any_activation,
    averages,
    class_covariances,
    full_batch,
    giant_step,
    latency,
    laws,
    macro,
    manifold,
    meso,
    micro,
    mixtures,
    multi_pass,
    page,
    plan,
    spectra,
    sweeps,
)
from .front import FRONT
from .table import Row, as_markdown, as_readme, as_text, machine, summary

Benchmark = Callable[[bool], list[Row]]

SUITE: dict[str, tuple[Benchmark, ...]] = {
    "Micro: real training runs": (micro.against_numpy, micro.limits, micro.engines),
    "Meso: the exact law of the overlaps": (meso.sizes, meso.levels, meso.algorithms, meso.full_run),
    "Macro: infinite size": (
        macro.by_levels,
        macro.long_run,
        macro.structure,
        macro.landing,
        macro.accuracies,
        macro.against_euler,
    ),
    "Laws: closed forms": (laws.linear,),
    "Gaussian averages": (
        averages.closed_forms,
        averages.rules,
        any_activation.square_loss,
        any_activation.softmax,
        any_activation.relu_outputs,
        any_activation.solutions,
    ),
    "Mixtures: classes": (mixtures.scales, mixtures.diffusion, class_covariances.solutions),
    "Full batch": (full_batch.scales, full_batch.horizon),
    "One giant step": (giant_step.experiment,),
    "Plans: labelled rows and schedules": (plan.schedules, plan.forecasts, multi_pass.forty_epochs),
    "Sweeps: many problems": (sweeps.grid,),
    "Spectra: outliers along training": (spectra.blocks, spectra.gram, spectra.stopping),
    "The five slowest things users do, and the limits they sit at": (
        latency.first_answers,
        macro.evaluation,
        full_batch.scatter,
        spectra.observing,
        manifold.training,
    ),
    "Waiting": (latency.waiting, page.slider),
}


def run(*, quick: bool = False, out: Path | None = None, front: Path | None = None) -> dict[str, list[Row]]:
    """Measure, print section by section, and write the page to `out` and the table of `front`, the README, if given."""
    print(machine() + "\n", flush=True)
    sections: dict[str, list[Row]] = {}
    for title, benchmarks in SUITE.items():
        sections[title] = [row for benchmark in benchmarks for row in benchmark(quick)]
        print(as_text(title, sections[title]), flush=True)
    print("quick: these sizes are too small for the numbers to mean anything" if quick else summary(sections))
    if out is not None:
        out.write_text(as_markdown(sections), encoding="utf-8")
        print(f"written: {out.parent.name}/{out.name}")
    if front is not None:
        front.write_text(with_table(front.read_text(encoding="utf-8"), as_readme(sections, FRONT)), encoding="utf-8")
        print(f"written: the table of {front.name}")
    return sections


def with_table(page: str, table: str) -> str:
    """A page with this table between its two marks."""
    return sub(r"(<!-- speed -->\n).*?(\n<!-- end of speed -->)", lambda m: m[1] + table + m[2], page, flags=DOTALL)

"""The command line. Heavy imports are inside the commands, so that help answers at once.

Every refusal is one line on standard error and exit code 2; `verify` exits with 1 if a claim is not as recorded. What
needs an extra that is not installed is left out by `verify` and by the gallery, which say so. Ctrl-C is one line that
says what is kept and how to go on, and exit code 130.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..interface.processes import keeping
from ..interface.terminal import adapt


class InterruptedCommand(SystemExit):
    """The end of a command that has answered Ctrl-C."""


class Commands(TyperGroup):
    """All commands; one that is interrupted says what is kept and how to go on."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            words = " ".join(str(stop).split()) or "nothing was written; the same command begins anew"
            print(f"overlaps: interrupted; {words}", file=sys.stderr)
            raise InterruptedCommand(130) from None


app = typer.Typer(
    cls=Commands,
    help="Predict how a neural network will learn, from a handful of overlaps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
papers_app = typer.Typer(help="Papers whose figures and claims are re-derived here.", rich_markup_mode=None)
app.add_typer(papers_app, name="papers")
store_app = typer.Typer(help="Stores of sweeps.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(store_app, name="store")

Spec = Annotated[Path, typer.Argument(help="A TOML spec; `overlaps demo` writes one to start from.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; it must not exist.")]
Resumed = Annotated[Path, typer.Option(help="Folder for the results; one of an interrupted run is gone on with.")]
Quick = Annotated[bool, typer.Option("--quick", help="Reduced sizes, in seconds instead of minutes.")]


def _read(path: Path) -> str:
    from ..interface.errors import InputError

    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"spec: no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"spec: {path} cannot be read as text ({error})") from None


def _there(out: Path) -> str:
    """What an interrupted command has written to its folder."""
    names = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if not names:
        return "nothing was written; the same command begins anew"
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} kept in {out}; the same command goes on"


def _execute(text: str, out: Path) -> None:
    from .experiment import Experiment

    experiment = Experiment.from_toml(text)
    print(experiment.describe(), flush=True)
    with keeping(lambda: _there(out)):
        outcome = experiment.execute(out)
    for result in outcome.results.values():
        print(result)
    print()
    for verdict in outcome.verdicts.values():
        print(verdict)
    print()
    print(f"picture: {outcome.figure_path}")
    print(f"verdict: {outcome.verdict_path}")
    print(f"spec and trajectories: {outcome.folder}")


@app.command()
def demo(out: Out = Path("overlaps-demo")) -> None:
    """Learning predicted, then trained: plateau, outliers of the Hessian, real images and a plan, in one picture."""
    from .demo import demonstrate

    with keeping(lambda: _there(out)):
        found = demonstrate(out)
    print()
    print(found)
    print()
    print(f"picture: {found.figure_path}")
    print(f"verdict: {found.verdict_path}")
    print(f"spec and trajectories: {found.folder}")
    print(f"next: change a number in {found.folder / 'spec.toml'} and run it:")
    print(f"  overlaps run {found.folder / 'spec.toml'} --out DIR")
    print("or ask what to expect of learning on your own data: overlaps spectrum DATA.csv")
    print("or plan a training on your labelled rows: overlaps learn ROWS.csv --target COLUMN --out DIR")


@app.command()
def run(spec: Spec, out: Resumed) -> None:
    """Run a spec at all three scales: trajectories (netCDF), a figure, a verdict and the spec, in a folder.

    An interrupted run goes on where it was.
    """
    _execute(_read(spec), out)


@app.command()
def sweep(
    spec: Spec,
    out: Annotated[Path, typer.Option(help="Store, the folder of the cells; a sweep that is there goes on, or grows.")],
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, in place of workers.")] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Say cells, CPU-hours and bytes; compute only a few.")] = False,
) -> None:
    """Run a spec over a grid of its fields: one dataset, a picture, and a file for each cell, kept as it is done."""
    import os

    from ..sweep.sweeping import launch
    from ..sweep.workers import chosen
    from .sweep_spec import SweepSpec, dry_run, write

    text = _read(spec)
    asked = SweepSpec.from_toml(text)
    if dry:
        print(dry_run(asked.planned(out if out.is_dir() else None), workers or os.cpu_count() or 1))
        return
    made = asked.planned(out)
    absent = made.missing()
    print(f"{len(made)} cells, {len(absent)} to compute", flush=True)
    launch(made, chosen(workers, cluster, len(absent)), absent, wait=True, progress=True)
    print(made)
    for what, path in write(made, text, out).items():
        print(f"{what}: {path}")


@store_app.command("check")
def store_check(folder: Annotated[Path, typer.Argument(help="The store: the folder of a sweep.")]) -> None:
    """Read every file of a store; damaged ones are set aside, named, and exit code 1."""
    from ..sweep.store import Store

    found = Store.existing(folder).check()
    print(found)
    if found.damaged:
        raise typer.Exit(1)


@app.command()
def check(spec: Spec) -> None:
    """Check a spec and say what would be computed, without computing it."""
    from .experiment import Experiment

    print(Experiment.from_toml(_read(spec)).describe())
    print("spec: ok")


@app.command()
def spectrum(
    file: Annotated[Path, typer.Argument(help="Your data, samples x columns: .npy, .npz or .csv.")],
    out: Annotated[Path | None, typer.Option(help="Folder for picture and numbers; it must not exist.")] = None,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 0.1,
    units: Annotated[int, typer.Option(help="Hidden units of the committee.")] = 4,
) -> None:
    """Measure the spectrum of your data and predict learning on it: curve, features, plateau."""
    from ..data import Spectrum
    from ..interface.checks import new_folder
    from ..plan.forecast import forecast

    if out is not None and out.exists():
        new_folder("out", out)  # refused before a large file is read, and made only once there is something to keep
    result = forecast(Spectrum.from_data(file), rate, units)
    print(result)
    if out is not None:
        picture, values = result.write(new_folder("out", out))
        print(f"picture: {picture}")
        print(f"data: {values}")


@app.command()
def learn(
    file: Annotated[Path, typer.Argument(help="Your rows, samples x columns: .csv, .npy, .npz or .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the labels: its name or number; of .npz the array's name.")],
    out: Annotated[Path, typer.Option(help="Folder for picture, table, numbers and summary; it must not exist.")],
    samples: Annotated[int | None, typer.Option(help="Samples a training sees; as many as rows by default.")] = None,
    standardise: Annotated[bool, typer.Option("--standardise", help="Divide columns by their deviations.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the trainings that check the forecast.")] = 0,
    loss: Annotated[
        str | None,
        typer.Option(help="Of classes: logistic, hinge or cross-entropy; otherwise linear regression on the labels."),
    ] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Of classes: hidden units of a two-layer network.")] = None,
    activation: Annotated[str | None, typer.Option(help="Of its units: erf by default, or relu, tanh, ...")] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="Labels are quantities, though whole numbers of few values.")
    ] = False,
) -> None:
    """Predict SGD on your labelled rows: learning curve, best rate and schedule, and how far to trust it."""
    from ..data import Samples
    from ..data.labels import quantities, split
    from ..interface.checks import new_folder
    from ..interface.errors import InputError
    from ..network.architectures import Committee
    from ..plan.forecast import forecast

    if out.exists():
        new_folder("out", out)  # refused before a large file is read, and made only once there is something to keep
    data: Any
    if regression:
        features, labels, _ = split(file, None, target)
        data = Samples(features, quantities(labels), standardise=standardise)
    else:
        data = Samples(file, target=target, standardise=standardise)
    if activation is not None and units is None:
        raise InputError("activation: it is that of a network; say how many units it has")
    student = None if units is None else Committee(units, "erf" if activation is None else activation)
    result: Any = forecast(data, loss=loss, student=student, samples=samples, seed=seed)  # type: ignore[call-overload]
    print(result)
    for what, path in result.write(new_folder("out", out)).items():
        print(f"{what}: {path}")


@app.command("app")
def page(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8050,
    host: Annotated[str, typer.Option(help="Address to listen on; only this machine by default.")] = "127.0.0.1",
) -> None:
    """Open a page with sliders: theory as you drag, then training; your data, outliers of the Hessian, papers."""
    from ..pages.app import serve

    serve(port, host)


@papers_app.callback(invoke_without_command=True)
def papers(
    context: typer.Context,
    long: Annotated[
        bool, typer.Option("--long", help="Figures, and what each claim says, where, and how it is measured.")
    ] = False,
) -> None:
    """List the papers and how many of their claims have which verdict; with --long all figures and claims."""
    if context.invoked_subcommand is not None:
        return
    from collections import Counter

    from ..papers import papers as known
    from ..papers.ledger import VERDICTS

    for paper in known().values():
        print(f"{paper.handle}: {paper.title}")
        print(f"  {paper.citation}")
        count = Counter(claim.expected for claim in paper.claims.values())
        verdicts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
        print(f"  {len(paper.figures)} figures, {len(paper.claims)} claims: {verdicts}")
        if not long:
            continue
        for figure in paper.figures.values():
            print(f"  figure {figure.name}: {figure.caption}")
        for claim in paper.claims.values():
            print(
                f"  claim {claim.name} ({claim.expected}), {claim.where}: {claim.statement}; measured: {claim.method}"
            )
            for control in paper.controls.get(claim.name, ()):
                print(f"    control: {control.words}")


@papers_app.command("run")
def papers_run(
    handle: str,
    figure: str,
    out: Out,
    quick: Quick = False,
    data: Annotated[Path | None, typer.Option(help="Your data, for the figures that draw real data.")] = None,
) -> None:
    """Draw a figure of a paper; picture and data go to a new folder."""
    from ..papers import draw_figure

    picture, values = draw_figure(handle, figure, out, quick=quick, data=data)
    print(f"picture: {picture}")
    print(f"data: {values}")


@papers_app.command("gallery")
def papers_gallery(
    out: Annotated[Path, typer.Option(help="Folder of the gallery; what it holds already is not drawn again.")],
    quick: Quick = False,
) -> None:
    """Draw all figures of all papers, but for those drawn before by the same code, and a page that shows them."""
    import os

    from ..papers import draw_gallery

    result = draw_gallery(out, quick=quick, processes=os.cpu_count() or 1)
    print(result)
    if result.trouble:
        raise typer.Exit(1)


@app.command()
def verify(
    handle: Annotated[str | None, typer.Argument(help="A paper of `overlaps papers`.")] = None,
    all_papers: Annotated[bool, typer.Option("--all", help="All papers, on all cores.")] = False,
    quick: Quick = False,
    json: Annotated[
        Path | None, typer.Option(help="File for the verdicts as JSON, as they are found; an interrupted one goes on.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also for claims not measured, or not decided.")
    ] = False,
) -> None:
    """Measure the claims of a paper, or of all; exit code 1 if a verdict contradicts the recorded one."""
    import os

    from tqdm.auto import tqdm

    from ..interface.errors import InputError
    from ..papers import verify as measure
    from ..papers.verification import Row

    if (handle is None) != all_papers:
        raise InputError("handle: expected a paper, or --all for all of them; `overlaps papers` lists them")
    handles = [] if handle is None else [handle]

    def show(row: Row) -> None:
        tqdm.write(f"{row.handle}: {row!r}" if all_papers else repr(row))  # above the bar, if there is one
        sys.stdout.flush()

    report = measure(*handles, quick=quick, processes=os.cpu_count() or 1, record=json, done=show)
    print(f"\n{report.conclusion()}")
    if json is not None:
        print(f"verdicts: {json}")
    if report.wrong or (strict and (report.not_measured or report.undecided)):
        raise typer.Exit(1)


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="Folder of run, sweep, learn or spectrum, or file of verify --json.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("report.html"),
) -> None:
    """Write one HTML file to send: question, verdict, figures to hover over, tables, how to repeat it; no network."""
    from ..pages.report import read, write

    path = write(read(source), out)
    print(f"report: {path} ({path.stat().st_size / 1e6:.1f} MB)")


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove it; it is compiled anew when it is needed.")] = False,
) -> None:
    """Say where compiled code is kept, and how much of it there is."""
    from ..compiled import code_cache

    if clear:
        code_cache.clear()
    files, size = code_cache.contents()
    print(f"compiled code: {files} files, {size / 1e6:.1f} MB in {code_cache.home() or 'no folder: there is no home'}")
    print(f"to keep it elsewhere, set {code_cache.VARIABLE}")


def main() -> None:
    """Entry point: turns refusals into one line and exit code 2, warnings into one line."""
    adapt()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(f"overlaps: warning: {message}", file=sys.stderr)
            app()
    except (ValueError, ArithmeticError, OSError, MemoryError) as error:
        from ..interface.errors import InputError, NumericalError

        if isinstance(error, (InputError, NumericalError)):
            reason = str(error)
        elif isinstance(error, MemoryError):
            reason = f"not enough memory: {error}; reduce size, units, levels, runs or count"
        elif isinstance(error, OSError):
            reason = f"{error.filename or 'a file'}: {error.strerror or error}"
        else:
            raise
        print(f"overlaps: {' '.join(reason.split())}", file=sys.stderr)
        sys.exit(2)
    except InterruptedCommand:
        raise
    except (KeyboardInterrupt, SystemExit) as end:  # Typer ends with 130 in silence while it reads the arguments
        if isinstance(end, SystemExit) and end.code != 130:
            raise
        print("overlaps: interrupted; the command had not begun, the same command does", file=sys.stderr)
        sys.exit(130)

"""The command line. Heavy imports are inside the commands, so that help answers at once.

Every refusal is one line on standard error and exit code 2; `verify` exits with 1 if a claim is not as recorded. What
needs an extra that is not installed is left out by `verify` and by the gallery, which say so.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from ..interface.terminal import adapt

app = typer.Typer(
    help="Predict how a neural network will learn, from a handful of overlaps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
papers_app = typer.Typer(help="Papers whose figures and claims are re-derived here.", rich_markup_mode=None)
app.add_typer(papers_app, name="papers")

Spec = Annotated[Path, typer.Argument(help="A TOML spec; `overlaps demo` writes one to start from.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; it must not exist.")]
Quick = Annotated[bool, typer.Option("--quick", help="Reduced sizes, in seconds instead of minutes.")]


def _read(path: Path) -> str:
    from ..interface.errors import InputError

    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"spec: no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"spec: {path} cannot be read as text ({error})") from None


def _execute(text: str, out: Path) -> None:
    from .experiment import Experiment

    experiment = Experiment.from_toml(text)
    print(experiment.describe(), flush=True)
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
def run(spec: Spec, out: Out) -> None:
    """Run a spec at all three scales: trajectories (netCDF), a figure, a verdict and the spec, in a new folder."""
    _execute(_read(spec), out)


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
    file: Annotated[Path, typer.Argument(help="Your rows, samples x columns: .csv, .npy or .npz.")],
    target: Annotated[str, typer.Option(help="Column of the labels: its name or number; of .npz the array's name.")],
    out: Annotated[Path, typer.Option(help="Folder for picture, table, numbers and summary; it must not exist.")],
    samples: Annotated[int | None, typer.Option(help="Samples a training sees; as many as rows by default.")] = None,
    standardise: Annotated[bool, typer.Option("--standardise", help="Divide columns by their deviations.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the trainings that check the forecast.")] = 0,
) -> None:
    """Predict SGD on your labelled rows: learning curve, best rate and schedule, and how far to trust it."""
    from ..data import Samples
    from ..interface.checks import new_folder
    from ..plan.forecast import forecast

    if out.exists():
        new_folder("out", out)  # refused before a large file is read, and made only once there is something to keep
    column = int(target) if target.lstrip("-").isdigit() else target
    result = forecast(Samples(file, target=column, standardise=standardise), samples=samples, seed=seed)
    print(result)
    for what, path in result.write(new_folder("out", out)).items():
        print(f"{what}: {path}")


@papers_app.callback(invoke_without_command=True)
def papers(context: typer.Context) -> None:
    """List the papers, their figures and their claims."""
    if context.invoked_subcommand is not None:
        return
    from ..papers import papers as known

    for paper in known().values():
        print(f"{paper.handle}: {paper.title}")
        print(f"  {paper.citation}")
        for figure in paper.figures.values():
            print(f"  figure {figure.name}: {figure.caption}")
        for claim in paper.claims.values():
            print(f"  claim {claim.name} ({claim.expected}): {claim.statement}; measured: {claim.method}")


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
    json: Annotated[Path | None, typer.Option(help="File for the verdicts as JSON; it must not exist.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 also for claims not measured.")] = False,
) -> None:
    """Measure the claims of a paper, or of all; exit code 1 if a verdict is not the recorded one."""
    import os

    from ..interface.errors import InputError
    from ..papers import verify as measure

    if (handle is None) != all_papers:
        raise InputError("handle: expected a paper, or --all for all of them; `overlaps papers` lists them")
    if json is not None and json.exists():
        raise InputError(f"json: {json} exists; give a new file")
    if json is not None and not json.parent.is_dir():
        raise InputError(f"json: no folder {json.parent}; make it first")
    handles = [] if handle is None else [handle]
    report = measure(*handles, quick=quick, processes=os.cpu_count() or 1)
    print(report)
    if json is not None:
        json.write_text(report.to_json(), encoding="utf-8")
        print(f"verdicts: {json}")
    if report.wrong or (strict and report.not_measured):
        raise typer.Exit(1)


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
    except KeyboardInterrupt:
        print("overlaps: interrupted", file=sys.stderr)
        sys.exit(130)

"""The house in order: who imports whom, what is public, what loading the package costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import overlaps as ov

HOME = Path(ov.__file__).parent
MODULES = sorted(HOME.rglob("*.py"))
RIGHT = {"plot", "cli", "papers", "experiment", "demo"}  # what people look at; everything else computes
LONGEST = 500  # lines of a file, unless its docstring says why it is longer


def name_of(path: Path) -> str:
    parts = path.relative_to(HOME).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(path: Path, *, inside_functions: bool, text: str | None = None) -> set[str]:
    """Modules of this package that a module, or a text in its place, imports when run, relative to the package."""
    found: set[str] = set()
    package = name_of(path).split(".") if path.name == "__init__.py" else name_of(path).split(".")[:-1]
    package = [part for part in package if part]

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if is_type_checking(child):
                continue
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and not inside_functions:
                continue
            if isinstance(child, ast.Import):
                found.update(a.name.removeprefix("overlaps.") for a in child.names if a.name.startswith("overlaps."))
            if isinstance(child, ast.ImportFrom):
                target = child.module or ""
                if child.level:
                    base = package[: len(package) - child.level + 1]
                    target = ".".join([*base, *([target] if target else [])])
                elif target == "overlaps" or target.startswith("overlaps."):
                    target = target.removeprefix("overlaps").removeprefix(".")
                else:
                    continue
                submodules = {f"{target}.{a.name}".lstrip(".") for a in child.names}
                found.update(submodules & NAMES or {target} - {""})
            visit(child)

    visit(ast.parse(path.read_text() if text is None else text))
    return found & NAMES


def test_walk_finds_imports() -> None:
    """The walk itself: a reader of imports that finds none would pass everything."""
    assert {"problem", "start", "trajectory", "averages"} <= imports(HOME / "macro.py", inside_functions=False)
    assert {"averages.erf", "averages.relu"} <= imports(HOME / "averages" / "closed.py", inside_functions=False)
    assert "plot" in imports(HOME / "trajectory.py", inside_functions=True)
    assert "plot" not in imports(HOME / "trajectory.py", inside_functions=False)


def test_no_cycles() -> None:
    graph = {name_of(path): imports(path, inside_functions=False) - {name_of(path)} for path in MODULES}
    state: dict[str, str] = {}

    def walk(name: str, path: tuple[str, ...]) -> None:
        if state.get(name) == "done":
            return
        assert name not in path, "imports go round: " + " -> ".join([*path[path.index(name) :], name])
        for other in sorted(graph[name]):
            walk(other, (*path, name))
        state[name] = "done"

    for name in graph:
        walk(name, ())


LEFT = [p for p in MODULES if name_of(p).split(".")[0] not in {"", "__main__", *RIGHT}]


@pytest.mark.parametrize("path", LEFT, ids=name_of)
def test_left_half_does_not_import_the_right(path: Path) -> None:
    """What computes does not know what draws, prints or tells of papers; `Trajectory.plot` alone calls plot."""
    at_load = {name.split(".")[0] for name in imports(path, inside_functions=False)}
    at_all = {name.split(".")[0] for name in imports(path, inside_functions=True)}
    assert not at_load & RIGHT
    assert not at_all & (RIGHT - ({"plot"} if name_of(path) == "trajectory" else set()))
    whole = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Import)]
    assert not any(a.name == "overlaps" for n in whole for a in n.names), "through the package all of it is in reach"


def test_left_half_is_all_there() -> None:
    """The walls stand around what they are meant for."""
    inside = {name_of(path).split(".")[0] for path in LEFT}
    assert inside >= {"problem", "data", "network", "averages", "macro", "meso", "micro", "laws", "spectra", "dmft"}


PAPERS = [p for p in MODULES if name_of(p).startswith("papers.") and len(p.relative_to(HOME).parts) > 2]


def private_uses(path: Path, text: str | None = None) -> list[str]:
    """What a module of a paper, or a text in its place, uses of the library that is not public."""
    own = ".".join(name_of(path).split(".")[:2])
    wrong = [
        name
        for name in imports(path, inside_functions=True, text=text)
        if name not in ("papers", "papers.estimates", "papers.ledger", "papers.panels")
        and not f"{name}.".startswith(f"{own}.")
    ]
    for node in ast.walk(ast.parse(path.read_text() if text is None else text)):
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id == "ov" and chain:
            module, names = ov, ov.__all__
            for part in chain:
                if part not in names:
                    wrong.append("ov." + ".".join(chain))
                    break
                module = getattr(module, part)
                if not isinstance(module, type(ov)):
                    break
                names = module.__all__
    return wrong


@pytest.mark.parametrize("path", PAPERS, ids=name_of)
def test_papers_use_the_public_interface_only(path: Path) -> None:
    assert not private_uses(path)


def test_private_uses_are_seen() -> None:
    """The walk itself, on a text that does what it must not."""
    text = "import overlaps as ov\nfrom ...points import holm\nov.laws.nothing(ov.draw, ov.runs)\n"
    assert sorted(private_uses(PAPERS[0], text)) == ["ov.laws.nothing", "ov.runs", "points"]


def test_files_are_short() -> None:
    """Median below 200 lines, none above 500 unless its docstring says why."""
    sizes = {path: len(path.read_text().splitlines()) for path in [*MODULES, *Path(__file__).parent.rglob("*.py")]}
    assert sorted(sizes.values())[len(sizes) // 2] < 200
    for path, size in sizes.items():
        reason = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert size <= LONGEST or "one file because" in reason, f"{path.name} has {size} lines"


def test_the_public_interface_is_small() -> None:
    assert len(ov.__all__) <= 42


@pytest.mark.parametrize("name", ov.__all__)
def test_public_names(name: str) -> None:
    thing = getattr(ov, name)
    if name != "__version__":
        assert (thing.__doc__ or "").strip(), f"{name} has no docstring"
        assert name in dir(ov)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_are(path: Path) -> None:
    assert (ast.get_docstring(ast.parse(path.read_text())) or "").strip()


def test_importing_the_package_is_cheap() -> None:
    """Help in under 0.3 s: nothing numerical is loaded before it is used."""
    heavy = "numba", "scipy", "numpy", "xarray", "matplotlib", "pandas"
    code = f"import sys, overlaps; overlaps.__version__; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_a_problem_does_not_compile_anything() -> None:
    """A spec can be checked without Numba."""
    code = (
        "import sys, overlaps as ov; "
        "net = ov.Committee(2); "
        "ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1)); "
        "print([m for m in ('numba', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

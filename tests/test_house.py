"""The house in order: who imports whom, what is public, what loading the package costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import overlaps as ov
from overlaps.algorithms import ALGORITHMS
from overlaps.data import MODELS

HOME = Path(ov.__file__).parent
MODULES = sorted(HOME.rglob("*.py"))
ROOMS = 20  # folders on the top level of the package, besides the door of `python -m overlaps`
RIGHT = {"plot", "pages", "cli", "papers"}  # what people look at; everything else computes
LONGEST = 500  # lines of a file, unless its docstring says why it is longer
MEDIAN = 150  # lines of the median file
FUNCTION = 80  # lines of a function outside papers, whose figures are long lists of what is drawn
PUBLIC = 52  # names besides __version__


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
    macro = imports(HOME / "online" / "macro.py", inside_functions=False)
    assert {"problem.statement", "problem.start", "trajectory.dataset", "averages"} <= macro
    assert {"averages.erf", "averages.relu"} <= imports(HOME / "averages" / "closed.py", inside_functions=False)
    assert "plot.curves" in imports(HOME / "trajectory" / "dataset.py", inside_functions=True)
    assert "plot.curves" not in imports(HOME / "trajectory" / "dataset.py", inside_functions=False)


def room_of(name: str) -> str:
    return name.split(".")[0]


def public_rooms() -> set[str]:
    """The rooms whose names `import overlaps` brings within reach."""
    stub = ast.parse((HOME / "__init__.pyi").read_text())
    lines = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {room_of(node.module or name.name) for node in lines for name in node.names}


def imports_the_package(text: str) -> bool:
    """Whether a module imports the package as a whole, and so may use every public name."""
    whole = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    return any(name.name == "overlaps" for node in whole for name in node.names)


def rooms(*, inside_functions: bool) -> dict[str, set[str]]:
    """Which rooms (folders and files on the top level of the package) each room imports."""
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        if room := room_of(name_of(path)):
            others = {room_of(name) for name in imports(path, inside_functions=inside_functions)}
            others |= public_rooms() if imports_the_package(path.read_text()) else set()
            graph.setdefault(room, set()).update(others - {room})
    return graph


def test_whole_imports_are_seen() -> None:
    """Papers and the demo are written against the public interface, and so stand above all rooms that it names."""
    assert imports_the_package("def f():\n    import overlaps as ov\n")
    assert not imports_the_package("import overlaps.data\nfrom overlaps import data\n")
    assert {"problem", "data", "sweep", "papers", "giant_step"} <= public_rooms()
    assert public_rooms() - {"papers"} <= rooms(inside_functions=True)["papers"]


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A way round in a graph of imports, or nothing."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        for other in sorted(graph.get(name, set())) if name not in done else ():
            if found := visit(other, (*path, name)):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, ()))), [])


def test_cycles_are_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_cycles_of_modules() -> None:
    graph = {name_of(path): imports(path, inside_functions=False) - {name_of(path)} for path in MODULES}
    assert not cycle(graph)


def test_no_cycles_of_rooms() -> None:
    """Imports within functions count as well."""
    assert len(rooms(inside_functions=True).keys() - {"__main__"}) <= ROOMS
    assert not cycle(rooms(inside_functions=True))


SHOWN = {  # results that a notebook shows or that draw themselves, and so call plot within their methods
    "problem.statement",
    "problem.start",
    "trajectory.dataset",
    "compare.verdict",
    "compare.finite_size",
    "plan.class_forecast",
    "plan.optimise",
    "plan.rows_forecast",
    "plan.spectrum_forecast",
    "sweep.result",
}
LEFT = [p for p in MODULES if room_of(name_of(p)) not in {"", "__main__", *RIGHT}]


@pytest.mark.parametrize("path", LEFT, ids=name_of)
def test_left_half_does_not_import_the_right(path: Path) -> None:
    """What computes does not import what draws, prints or checks papers; methods of results alone call plot."""
    at_load = {room_of(name) for name in imports(path, inside_functions=False)}
    at_all = {room_of(name) for name in imports(path, inside_functions=True)}
    assert not at_load & RIGHT
    assert not at_all & (RIGHT - ({"plot"} if name_of(path) in SHOWN else set()))
    assert not imports_the_package(path.read_text()), "through the package all of it is in reach"


def test_left_half_is_all_there() -> None:
    """The walls stand around what they are meant for."""
    inside = {room_of(name_of(path)) for path in LEFT}
    engines = {"online", "full_batch", "giant_step"}
    assert inside >= {"problem", "data", "algorithms", "averages", "laws", "spectra", "compare", *engines}


PAPERS = [p for p in MODULES if name_of(p).startswith("papers.") and len(p.relative_to(HOME).parts) > 2]


def private_uses(path: Path, text: str | None = None) -> list[str]:
    """What a module of a paper, or a text in its place, uses of the library that is not public."""
    own = ".".join(name_of(path).split(".")[:2])
    wrong = [
        name
        for name in imports(path, inside_functions=True, text=text)
        if name not in ("papers", "papers.controls", "papers.estimates", "papers.ledger", "papers.panels")
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
                if not isinstance(module, ModuleType):
                    break
                names = module.__all__
    return wrong


@pytest.mark.parametrize("path", PAPERS, ids=name_of)
def test_papers_use_the_public_interface_only(path: Path) -> None:
    assert not private_uses(path)


def test_private_uses_are_seen() -> None:
    """The walk itself, on a text that does what it must not."""
    text = "import overlaps as ov\nfrom ...trajectory.points import points\nov.laws.nothing(ov.draw, ov.online)\n"
    assert sorted(private_uses(PAPERS[0], text)) == ["ov.laws.nothing", "ov.online", "trajectory.points"]


KINDS = {kind.__name__ for kind in (*ALGORITHMS, ov.GiantStep, *MODELS)} | {"Shared", "Centred", "Levels", "OnePass"}
DOORS = {  # where a problem comes in, and the engine that it is for is chosen
    "problem.statement": {"GiantStep"},  # in the message that says where giant steps belong
    "full_batch.task": {"FullBatch"},
    "giant_step.setting": {"GiantStep"},
}


def asks_for_a_kind(text: str) -> set[str]:
    """Algorithms and data models that a module asks for by `isinstance`, `issubclass` or `type(...) is`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        asked: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = list(node.args[1:])
        if isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            asked = list(node.comparators)
        if isinstance(node, ast.MatchClass):
            asked = [node.cls]
        names = (name for part in asked for name in ast.walk(part))
        found |= {name.id for name in names if isinstance(name, ast.Name)}
        names = (name for part in asked for name in ast.walk(part))
        found |= {name.attr for name in names if isinstance(name, ast.Attribute)}
    return found & KINDS


def test_nothing_asks_for_the_class_of_an_algorithm_or_a_data_model() -> None:
    """They answer questions instead (see CONTRIBUTING); a class that nobody asks for cannot be forgotten."""
    assert asks_for_a_kind("isinstance(x, (int, ov.Samples))\ntype(y) is FullBatch\nisinstance(z, Committee)") == {
        "Samples",
        "FullBatch",
    }
    for path in MODULES:
        if room_of(name_of(path)) == "papers":  # which assert what their own problems are made of
            continue
        own = {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)}  # equality
        wrong = asks_for_a_kind(path.read_text()) - DOORS.get(name_of(path), set()) - own
        assert not wrong, f"{name_of(path)} asks for {', '.join(sorted(wrong))}; make it an attribute of all of them"


def homes_of_classes(texts: dict[str, str]) -> dict[str, set[str]]:
    """Which modules define each class, of modules given by name and text; counted once for each module."""
    homes: dict[str, set[str]] = {}
    for module, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(module)
    return homes


def test_a_class_name_means_one_thing() -> None:
    """Outside papers, whose problems have names of their own; private classes count as well."""
    assert homes_of_classes({"a": "class A:\n    class B: ...", "b": "def f():\n    class B: ..."})["B"] == {"a", "b"}
    texts = {name_of(path): path.read_text() for path in MODULES if room_of(name_of(path)) != "papers"}
    twice = {name: modules for name, modules in homes_of_classes(texts).items() if len(modules) > 1}
    for name, modules in sorted(twice.items()):
        pytest.fail(f"{name} is a class of {', '.join(sorted(modules))}; give one of them another name")


def test_files_are_short() -> None:
    """The median file is short, and none is long unless its docstring says why."""
    sizes = {path: len(path.read_text().splitlines()) for path in [*MODULES, *Path(__file__).parent.rglob("*.py")]}
    assert sorted(sizes.values())[len(sizes) // 2] < MEDIAN
    for path, size in sizes.items():
        reason = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert size <= LONGEST or "one file because" in reason, f"{path.name} has {size} lines"


def lengths_of_functions(text: str) -> dict[str, int]:
    """Lines of each function of a module, from its name to its last line."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions}


def test_functions_are_short() -> None:
    assert lengths_of_functions("def f():\n    pass\n    pass\n") == {"f": 3}
    for path in MODULES:
        if room_of(name_of(path)) != "papers":
            for name, lines in lengths_of_functions(path.read_text()).items():
                assert lines <= FUNCTION, f"{name} of {name_of(path)} has {lines} lines; split it"


def test_the_public_interface_is_small() -> None:
    assert len({*ov.__all__} - {"__version__"}) <= PUBLIC


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


@pytest.mark.parametrize(("name", "module"), [("compare", "verdict"), ("sweep", "store")])
def test_a_function_is_not_hidden_by_the_folder_of_its_name(name: str, module: str) -> None:
    """`overlaps.compare` is the function, also once the folder of that name has been loaded."""
    code = f"import overlaps.{name}.{module}, overlaps as ov; print(ov.{name}.__name__, callable(ov.{name}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [name, "True"]


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

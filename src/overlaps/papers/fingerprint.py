"""Digest of the code that a figure may depend on: whoever is imported by its module, or by one of those, and so on.

Imports are read, not run. Within a paper every module counts by itself; of the library, a folder counts as a whole, as
folders find their own modules by themselves, and `import overlaps as ov` stands for the names `ov.NAME` in use. Neither
comments, docstrings and layout count, nor what is registered with a figure or claim: captions, statements, verdicts.

>>> from overlaps.papers.fingerprint import closure
>>> sorted(unit for unit in closure("papers.scaling.sum_figures") if unit.startswith("papers"))
['papers.estimates', 'papers.panels', 'papers.scaling.panels', 'papers.scaling.paper', 'papers.scaling.sum_figures']
>>> "laws" in closure("papers.scaling.sum_figures"), "dmft" in closure("papers.scaling.sum_figures")
(True, False)
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .. import _HOME, _MODULES

PACKAGE = Path(__file__).parent.parent


@cache
def fingerprint(module: str) -> str:
    """Digest of all that is in the closure of a module of this package, such as ``papers.scaling.sum_figures``."""
    digest = hashlib.sha256()
    for unit in sorted(closure(module)):
        for path in _files(unit):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\n" + _substance(path) + b"\n")
    return digest.hexdigest()[:16]


@cache
def closure(module: str) -> frozenset[str]:
    """The module and all that it imports, directly or not: modules of papers, other modules and folders."""
    found, ahead = set[str](), [module]
    while ahead:
        unit = ahead.pop()
        if unit not in found:
            found.add(unit)
            ahead += (other for path in _files(unit) if path.suffix == ".py" for other in _imported(path))
    return frozenset(found)


def _files(unit: str) -> list[Path]:
    """A module's file, or all that is in a folder, data too."""
    path = PACKAGE.joinpath(*unit.split("."))
    if not path.is_dir():
        return [path.with_suffix(".py")]
    return sorted(each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts)


def _unit(parts: list[str]) -> str | None:
    """What counts as one and holds this module; of `papers` what draws: papers' own modules, panels and estimates."""
    if parts[:1] != ["papers"]:
        return parts[0] if parts else None
    return ".".join(parts[:3]) if len(parts) > 2 or parts[1:] in (["panels"], ["estimates"]) else None


@cache
def _imported(path: Path) -> frozenset[str]:
    """What a file imports of this package, wherever it does so, but not what is for type checkers alone."""
    package = list(path.relative_to(PACKAGE).parent.parts)
    modules: list[list[str]] = []
    ours, all_uses, named = set[str](), 0, list[str]()
    for node in _run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += (a.name.split(".")[1:] for a in node.names if a.name.startswith("overlaps."))
            ours |= {a.asname or a.name for a in node.names if a.name == "overlaps"}
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "overlaps"):
            target = node.module.split(".") if node.module else []
            base = [*package[: len(package) - node.level + 1], *target] if node.level else target[1:]
            # a name may be a module of its own
            inside = [[*base, a.name] for a in node.names if _is_module([*base, a.name])]
            modules += [*inside, base]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
            named.append(node.attr)
        elif isinstance(node, ast.Name) and node.id in ours:
            all_uses += 1
    # the package handed on as a whole may be asked for anything
    names = named if all_uses == len(named) else [*_HOME, *_MODULES]
    modules += ([name] if name in _MODULES else _HOME[name].split(".") for name in names if name in {*_HOME, *_MODULES})
    return frozenset(unit for parts in modules if (unit := _unit(parts)))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run, in the order of the text."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            ahead += reversed(list(ast.iter_child_nodes(node)))


def _is_module(parts: list[str]) -> bool:
    path = PACKAGE.joinpath(*parts)
    return path.with_suffix(".py").is_file() or path.is_dir()


@cache
def _substance(path: Path) -> bytes:
    """What a file says, without comments, docstrings, layout and what is registered; data as they are."""
    if path.suffix != ".py":
        return path.read_bytes()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [d for d in node.decorator_list if not ast.unparse(d).startswith("PAPER.")]
    return ast.unparse(tree).encode()

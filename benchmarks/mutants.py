"""Makes functions wrong in one place: what `benchmarks.claim_mutants` and `benchmarks.formula_mutants` share.

A mutant is a function with one operator or number changed: + and −, × and / exchanged, a power made a product, a number
larger by one, a minus left out. Indices, options of calls, conditions and messages are left as they are.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

SWAPS: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}


def functions(module: str) -> dict[str, FunctionType]:
    """Functions and methods that are written in a module, by name; what a cache wraps is unwrapped."""
    loaded = importlib.import_module(module)
    found: dict[str, Any] = {}
    for name, value in vars(loaded).items():
        found[name] = value
        if inspect.isclass(value) and value.__module__ == module:
            found |= {f"{name}.{key}": getattr(each, "__func__", each) for key, each in vars(value).items()}
    getters: dict[str, Any] = {name: _getter(value) for name, value in found.items()}
    plain = {name: inspect.unwrap(value) for name, value in getters.items()}
    return {name: value for name, value in plain.items() if _written(value, module)}


def _getter(value: Any) -> Any:
    """The function of a property, and of one that is computed once; anything else as it is."""
    return value.func if isinstance(value, cached_property) else getattr(value, "fget", value)


def _written(value: Any, module: str) -> bool:
    """Whether it is a function whose source is in that module, and not made by a decorator."""
    return isinstance(value, FunctionType) and value.__module__ == module and Path(value.__code__.co_filename).exists()


class Site(ast.NodeTransformer):
    """Counts the places where a function can be made wrong, and changes the one that is asked for."""

    def __init__(self, at: int = -1) -> None:
        self.at, self.count, self.words = at, 0, ""

    def _here(self, words: str) -> bool:
        self.count += 1
        if self.count - 1 == self.at:
            self.words = words
            return True
        return False

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        swap = SWAPS.get(type(node.op))
        before = ast.unparse(node)
        if swap is not None and not _text(node) and "e-1" not in before and self._here(before):
            node.op = swap()
            self.words = f"`{_short(before)}` → `{_short(ast.unparse(node))}`"
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.operand, ast.Constant):
            return node  # −1 is a length to be found, or an axis
        self.generic_visit(node)
        before = ast.unparse(node)
        if isinstance(node.op, ast.USub) and self._here(before):
            self.words = f"`{_short(before)}` → `{_short(ast.unparse(node.operand))}`"
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return node
        if 0 < abs(value) < 100 and self._here(str(value)):
            self.words = f"`{value}` → `{value + 1}`"
            return ast.Constant(value + 1)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)  # an index is no part of a formula
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node  # options of functions, such as axes and tolerances

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        node.body = [self.visit(each) for each in node.body]  # conditions are refusals and short cuts
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node


def _text(node: ast.BinOp) -> bool:
    return any(isinstance(side, (ast.JoinedStr, ast.List, ast.Tuple)) for side in (node.left, node.right)) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
    )


def _short(words: str) -> str:
    words = " ".join(words.replace("|", "or").split())
    return words if len(words) <= 48 else words[:45] + "..."


def _tree(function: FunctionType) -> ast.Module:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    node.body = [
        each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    return tree


def mutated(function: FunctionType, at: int) -> tuple[CodeType, str] | None:
    """The code of a function with its place number `at` made wrong, and in words what; None where it has none."""
    tree, site = _tree(function), Site(at)
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    node.body = [site.visit(each) for each in node.body]
    if not site.words:
        return None
    ast.fix_missing_locations(tree)
    outer = compile(tree, function.__code__.co_filename, "exec")
    code = next(each for each in outer.co_consts if isinstance(each, CodeType))
    if code.co_freevars != function.__code__.co_freevars:
        return None
    return code, site.words


def sites(function: FunctionType) -> int:
    """How many places of a function can be made wrong."""
    if function.__closure__:
        return 0
    counter, node = Site(), _tree(function).body[0]
    assert isinstance(node, ast.FunctionDef)
    for each in node.body:
        counter.visit(each)
    return counter.count

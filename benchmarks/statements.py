"""Statements of a paper by their numbers: how many its claims and its entries without a claim name.

A statement is an equation, a theorem, a lemma, a figure, … by its number, with all of a range; a place without a
number, such as an abstract, is one.

>>> sorted(places("eqs. (71) and (78)")), sorted(places("lemmas 3.1 to 3.3"))
(['equation 71', 'equation 78'], ['lemma 3.1', 'lemma 3.2', 'lemma 3.3'])
>>> sorted(places("theorem 2.4 and its proof, eqs. (7.3) and (7.4)"))
['equation 7.3', 'equation 7.4', 'theorem 2.4']
>>> sorted(places("figures K.1 to K.3, tables I and II")), sorted(places("abstract"))
(['figure K.1', 'figure K.2', 'figure K.3', 'table I', 'table II'], ['abstract'])
>>> sorted(places("figure 6 (left) at K = M = 40, figure S3")), places("not in the paper; the sizes of figure 2")
(['figure 6', 'figure S3'], set())
"""

from __future__ import annotations

import re

from overlaps.papers import Paper

KINDS = {
    "eq": "equation",
    "eqs": "equation",
    "corollaries": "corollary",
    "properties": "property",
    "appendices": "appendix",
    **{
        kind + plural: kind
        for kind in (
            *("algorithm", "assumption", "claim", "definition", "fact", "figure", "lemma", "note", "observation"),
            *("proposition", "remark", "section", "setup", "table", "theorem", "property", "corollary", "appendix"),
        )
        for plural in ("", "s")
    },
}
LABEL = r"(?:S\d+|[A-Z]{1,3}|\d+)(?:[ .](?:[A-Z]{1,3}|\d+))*"
TOKEN = re.compile(
    rf"(?P<word>[A-Za-z][a-z]+|[a-z])(?=\W|\d|$)|\((?P<equation>S?\d+(?:\.\d+)?)\)|(?<![\w(])(?P<label>{LABEL})(?!\w)"
)


def places(where: str) -> set[str]:
    """The statements that a place of a claim names; none if it is not in the paper."""
    if where.startswith("not in the paper"):
        return set()
    found: set[str] = set()
    kind, last, through = "", "", False
    for token in TOKEN.finditer(where):
        word = token["word"]
        if word is not None:
            through = word == "to" and bool(last)
            if word not in ("and", "to"):  # another kind, or words with numbers of their own
                kind, last = KINDS.get(word.lower(), ""), ""
            if word == "abstract":
                found.add(word)
            continue
        label = token["equation"] or token["label"]
        # an equation has its number in brackets, and nothing else has
        if not kind or bool(token["equation"]) != (kind == "equation"):
            continue
        found |= {f"{kind} {each}" for each in (_range(last, label) if through else [label])}
        last, through = label, False
    return found or {where}


def _range(first: str, last: str) -> list[str]:
    """All numbers from the first to the last, which differ in their end."""
    begin, end = (re.fullmatch(r"(.*?)(\d+)", label) for label in (first, last))
    if begin is None or end is None or begin[1] != end[1]:
        return [first, last]
    return [f"{begin[1]}{number}" for number in range(int(begin[2]), int(end[2]) + 1)]


def counted(paper: Paper) -> tuple[int, int]:
    """How many statements of a paper are named, and how many of them by a claim."""
    claimed = set().union(*(places(claim.where) for claim in paper.stated))
    return len(claimed.union(*(places(each.where) for each in paper.unclaimed))), len(claimed)

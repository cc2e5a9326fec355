"""The string literals below the members of a class."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def member_docs(cls: type) -> dict[str, str]:
    """The text below each member, on one line; members without a text are left out.

    Members of base classes in the same module come first.
    """
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ == cls.__module__:
            docs |= _own_docs(base)
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    [node] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    return {
        _name(member): " ".join(below.value.value.split())
        for member, below in pairwise(node.body)
        if isinstance(member, ast.Assign | ast.AnnAssign)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _name(member: ast.Assign | ast.AnnAssign) -> str:
    target = member.targets[0] if isinstance(member, ast.Assign) else member.target
    assert isinstance(target, ast.Name)
    return target.id

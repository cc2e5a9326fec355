"""Answers to a path or method that no route has: they name the nearest route and /docs."""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import APIRoute

LONGEST = 100  # characters of a path that are compared and shown
NO_WORDS = frozenset({"", "v1", "v2", "v3", "api"})


def no_such_route(request: Request) -> str:
    """The text of a 404: the route that shares most words with the path, if one does."""
    path = request.url.path[:LONGEST]
    routes = _routes(request)
    words = _words(path)
    nearest = min(routes, key=lambda route: _distance(route, words, request.method), default=None)
    if path == "/":
        hint = "This is the API of Memlane"
    elif nearest is None or not words & _words(nearest.path):
        hint = f"There is no route {path}"
    else:
        method = min(nearest.methods or ["GET"])
        hint = f"There is no route {path}; the nearest is {method} {nearest.path}"
    return f"{hint}. {_where(request)}"


def wrong_method(request: Request) -> str:
    """The text of a 405: the methods of this path."""
    path, scope = request.url.path[:LONGEST], request.scope
    methods = {
        method
        for route in _routes(request)
        if route.path_regex.fullmatch(scope["path"])
        for method in route.methods or ()
    }
    allowed = " or ".join(sorted(methods)) or "another method"
    return f"{path} does not take {request.method[:16]}; use {allowed}. {_where(request)}"


def _routes(request: Request) -> list[APIRoute]:
    routes: list[APIRoute] = request.app.state.routes
    return routes


def _distance(route: APIRoute, words: frozenset[str], method: str) -> tuple[int, bool, bool, int]:
    """Sorts routes: more shared words first, then the same method, then the shorter path.

    A route of the Platform's API precedes one of Mem0's open-source server.
    """
    shared, others = len(words & _words(route.path)), method not in (route.methods or ())
    return -shared, others, not route.path.startswith("/v"), len(route.path)


def _words(path: str) -> frozenset[str]:
    return frozenset(path.casefold().split("/")) - NO_WORDS


def _where(request: Request) -> str:
    described = request.app.state.described
    return "All routes: /docs." if described else "All routes: docs/reference/api-compat.md."

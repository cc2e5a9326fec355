"""The list of attacks, and how one is declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from tests.bench.hostile.tenant import Statuses, Tenant

Run = Callable[[Tenant], Awaitable[Statuses]]
OK = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT})


@dataclass(frozen=True, slots=True)
class Attack:
    """Requests of the hostile tenant. `expects`: statuses of which at least one must come."""

    name: str
    about: str
    run: Run
    expects: frozenset[int]


ATTACKS: list[Attack] = []


def attack(
    name: str, about: str, *, expects: frozenset[int] | set[int] = OK
) -> Callable[[Run], Run]:
    """Register a function as an attack."""

    def register(run: Run) -> Run:
        ATTACKS.append(Attack(name, about, run, frozenset(expects)))
        return run

    return register

"""What can go wrong, by what helps.

    MemlaneError
    ├── StageError                a stage cannot go on; `usage` is what it cost until then
    │   ├── TransientError            a retry may help: the lane waits and keeps its place
    │   │   ├── ModelUnavailable      LLM_UNAVAILABLE: connection, 5xx, 429 past the in-call retries
    │   │   └── StoreUnavailable      STORE_UNAVAILABLE: vectors or another projection out of reach
    │   │       └── CollectionMissing     the store is up but was wiped: make the collection again
    │   └── PermanentError            a retry does not help: the event ends FAILED with `code`
    │       ├── InvalidInput          INVALID_INPUT: the request; the text says what to change
    │       ├── ModelRejected         LLM_REJECTED: wrong key, unknown model, policy, long prompt
    │       ├── MalformedAnswer       LLM_BAD_OUTPUT: unparseable even after one repair
    │       ├── PoisonCrash           POISON_CRASH: the event killed its worker too often
    │       └── DeadlinePassed        DEADLINE: waited longer than the outage budget
    ├── Overloaded                too much waits, or a key asks too often: `retry_after_s` says when
    ├── LaneLost                  another activation holds the lane: drop the work, change nothing
    ├── MovedOn                   a person changed what a stage had read: work it out once more
    │   └── Outdated                  … or what the saved decisions are about: decide once more
    ├── ProjectGone               deleted while a process still knew its key
    ├── Forbidden                 the key is good, and may not do this
    ├── Undeliverable             a webhook's receiver cannot be reached, or may not be asked
    │   └── Unanswered                it does not answer within the time
    ├── NotFound                  no such memory, event or project for this key
    └── Conflict                  a good request that comes too late, or contradicts what is kept

An empty answer is a MalformedAnswer or a reasoned NOOP, never a silent success.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from pipeline.domain import FailureCode, Usage


class MemlaneError(Exception):
    """Root of every error raised on purpose."""


class StageError(MemlaneError):
    """`usage`: what models were paid before it came to this."""

    code: ClassVar[FailureCode] = FailureCode.INTERNAL
    usage: Usage = Usage()


@contextmanager
def paid(usage: Usage) -> Iterator[None]:
    """An error raised inside carries what was paid before."""
    try:
        yield
    except StageError as error:
        error.usage = usage + error.usage
        raise


class TransientError(StageError):
    """Trying again later may succeed.

    `retry_after_s`: seconds the other side asked for, where it did.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(TransientError):
    code = FailureCode.LLM_UNAVAILABLE


class StoreUnavailable(TransientError):
    code = FailureCode.STORE_UNAVAILABLE


class CollectionMissing(StoreUnavailable):
    """The vector store answers, and knows no such collection."""


class PermanentError(StageError):
    """Trying again gives the same result."""


class InvalidInput(PermanentError):
    code = FailureCode.INVALID_INPUT


class ModelRejected(PermanentError):
    code = FailureCode.LLM_REJECTED


class MalformedAnswer(PermanentError):
    code = FailureCode.LLM_BAD_OUTPUT


class PoisonCrash(PermanentError):
    code = FailureCode.POISON_CRASH


class DeadlinePassed(PermanentError):
    code = FailureCode.DEADLINE


class LaneLost(MemlaneError):
    """The fence has moved on: a younger activation owns the lane."""


class MovedOn(MemlaneError):
    """What a stage's effects rest on has changed since it was read; nothing was written."""


class Outdated(MovedOn):
    """A memory that the saved decisions are about has another text by now."""


class Overloaded(MemlaneError):
    """Too much waits already, or the key asks too often; nothing was accepted.

    `retry_after_s`: whole seconds; `everybody`: the server's limit, not this caller's.
    """

    def __init__(self, message: str, *, retry_after_s: int, everybody: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.everybody = everybody


class ProjectGone(MemlaneError):
    """The project that a key opened is deleted."""


class Forbidden(MemlaneError):
    """The key opens the project and may do less than was asked; the text says what it takes."""


class Undeliverable(MemlaneError):
    """A webhook's receiver gave no answer, or is not to be asked; the text goes to its log."""


class Unanswered(Undeliverable):
    """A webhook's receiver took longer than a try may take."""


class NotFound(MemlaneError):
    """Nothing with that id belongs to the caller's project."""


class Conflict(MemlaneError):
    """The state of what it is about does not allow it; the text says what would."""

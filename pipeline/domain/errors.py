"""Errors, ordered by what helps: a retry, a change of the request, or nothing.

    MemlaneError
    ├── StageError                a stage failed; `usage` is what its model calls cost
    │   ├── TransientError            a retry can help: the lane waits and keeps its position
    │   │   ├── ModelUnavailable      LLM_UNAVAILABLE: connection, 5xx, 429 after in-call retries
    │   │   └── StoreUnavailable      STORE_UNAVAILABLE: the vector store cannot be reached
    │   │       └── CollectionMissing     the store is up but was wiped: create the collection again
    │   └── PermanentError            a retry does not help: the event ends FAILED with `code`
    │       ├── InvalidInput          INVALID_INPUT: the text says what to change
    │       ├── ModelRejected         LLM_REJECTED: wrong key, unknown model, policy, long prompt
    │       ├── MalformedAnswer       LLM_BAD_OUTPUT: cannot be parsed even after one repair
    │       ├── PoisonCrash           POISON_CRASH: the event crashed its worker too often
    │       └── DeadlinePassed        DEADLINE: waited longer than the outage budget
    ├── Overloaded                backlog or rate limit reached: retry after `retry_after_s`
    ├── LaneLost                  another activation owns the lane: discard the work, write nothing
    ├── MovedOn                   a user changed the data that a stage had read: run the stage again
    │   └── Outdated                  … or a memory that a saved decision names: decide again
    ├── ProjectGone               the project was deleted while a process had its key cached
    ├── Forbidden                 the key is valid but its scope does not allow this
    ├── Undeliverable             a webhook receiver is out of reach, or its address forbidden
    │   └── Unanswered                it does not answer within the timeout
    ├── NotFound                  no such memory, event or project for this key
    └── Conflict                  the state of the object does not allow the request

An empty answer of a model is a MalformedAnswer or a NOOP with a reason, never a silent success.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from pipeline.domain.events import FailureCode
from pipeline.domain.usage import Usage


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

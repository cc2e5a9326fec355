"""Tree of errors, ordered by what helps: a retry, a change of the request, or nothing.

    MemlaneError
    ├── StageError                a stage failed; `usage` is what its model calls cost
    │   ├── TransientError            a retry can help: the lane waits and keeps its position
    │   │   ├── ModelUnavailable      LLM_UNAVAILABLE: connection, 5xx, 429 after in-call retries
    │   │   │   └── SettingRejected       LLM_REJECTED: wrong key, no credit, unknown model
    │   │   └── StoreUnavailable      STORE_UNAVAILABLE: the vector store cannot be reached
    │   │       └── CollectionMissing     the store is up but was wiped: create the collection again
    │   └── PermanentError            a retry does not help: the event ends FAILED with `code`
    │       ├── InvalidInput          INVALID_INPUT: the text says what to change
    │       ├── ModelRejected         LLM_REJECTED: this prompt: content policy, too long
    │       ├── MalformedAnswer       LLM_BAD_OUTPUT: cannot be parsed even after one repair
    │       ├── PoisonCrash           POISON_CRASH: the event crashed its worker too often
    │       ├── DeadlinePassed        DEADLINE: waited longer than the outage budget
    │       └── BudgetExceeded        BUDGET_EXCEEDED: needs a model, and the budget is used up
    ├── Overloaded                backlog or rate limit reached: retry after `retry_after_s`
    ├── LaneLost                  another activation owns the lane: discard the work, write nothing
    ├── MovedOn                   a user changed the data that a stage had read: run the stage again
    │   └── Outdated                  … or a memory that a saved decision names: decide again
    ├── ProjectGone               the project was deleted while a process had its key cached
    ├── Forbidden                 the key is valid but its scope does not allow this
    ├── Undeliverable             a webhook receiver is out of reach, or its address is forbidden
    │   └── Unanswered                it does not answer within the timeout
    ├── NotFound                  no such memory, event or project for this key
    └── Conflict                  the state of the object does not allow the request

An empty model answer is a MalformedAnswer, or a NOOP with a reason, never a silent success.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from pipeline.domain.events import FailureCode
from pipeline.domain.usage import Usage


class MemlaneError(Exception):
    """Root of all errors that Memlane raises on purpose."""


class StageError(MemlaneError):
    """A stage failed. `usage` is the cost of the model calls made before the failure."""

    code: ClassVar[FailureCode] = FailureCode.INTERNAL
    usage: Usage = Usage()


@contextmanager
def paid(usage: Usage) -> Iterator[Usage]:
    """Add `usage` to the cost carried by a StageError raised inside the block."""
    try:
        yield usage
    except StageError as error:
        error.usage = usage + error.usage
        raise


class TransientError(StageError):
    """A later attempt can succeed.

    `retry_after_s`: the delay in seconds that the provider asked for, or None.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(TransientError):
    """The LLM or embedder cannot be reached, or its rate limit holds after in-call retries."""

    code = FailureCode.LLM_UNAVAILABLE


class SettingRejected(ModelUnavailable):
    """The provider refuses every call with this key or model, for any prompt.

    The event waits as in an outage: it goes on once the setting or the account is corrected.
    """

    code = FailureCode.LLM_REJECTED


class StoreUnavailable(TransientError):
    """The vector store cannot be reached."""

    code = FailureCode.STORE_UNAVAILABLE


class CollectionMissing(StoreUnavailable):
    """The vector store answers, but the collection does not exist."""


class PermanentError(StageError):
    """Another attempt would give the same result."""


class InvalidInput(PermanentError):
    """The request cannot be processed. The text says what to change."""

    code = FailureCode.INVALID_INPUT


class ModelRejected(PermanentError):
    """The provider refuses this call because of its content, such as its policy or length."""

    code = FailureCode.LLM_REJECTED


class MalformedAnswer(PermanentError):
    """The model's answer cannot be used, even after one repair request.

    `hint`: words for the model, which may quote texts. The message quotes none, and is stored.
    """

    code = FailureCode.LLM_BAD_OUTPUT

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PoisonCrash(PermanentError):
    """The event crashed its worker too often."""

    code = FailureCode.POISON_CRASH


class DeadlinePassed(PermanentError):
    """The event waited longer than the outage budget."""

    code = FailureCode.DEADLINE


class BudgetExceeded(PermanentError):
    """The operation needs a model, and the project's or the user's budget is used up."""

    code = FailureCode.BUDGET_EXCEEDED


class LaneLost(MemlaneError):
    """The fence was raised: a newer activation owns the lane. Nothing was written."""


class MovedOn(MemlaneError):
    """Optimistic lock failed: rows that the stage read have changed. Nothing was written."""


class Outdated(MovedOn):
    """Optimistic lock failed on a memory that a saved decision names: its text has changed."""


class Overloaded(MemlaneError):
    """The backlog or the rate limit is full; nothing was accepted.

    `retry_after_s`: whole seconds. `server_wide`: the limit is the server's, not this caller's.
    """

    def __init__(self, message: str, *, retry_after_s: int, server_wide: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.server_wide = server_wide


class ProjectGone(MemlaneError):
    """The key's project is deleted."""


class Forbidden(MemlaneError):
    """The key is valid but its role is too low. The text names the role needed."""


class Undeliverable(MemlaneError):
    """A webhook delivery failed: no answer, or a forbidden address. The text goes to its log."""


class Unanswered(Undeliverable):
    """A webhook receiver did not answer within the timeout of one attempt."""


class NotFound(MemlaneError):
    """The caller's project has no object with that id."""


class Conflict(MemlaneError):
    """The state of the object does not allow the request. The text says what would.

    `code`: the failure code of the event that the request waited for, or None.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class ChangedSince(Conflict):
    """The object has another version than the request expects."""

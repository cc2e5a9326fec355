"""Memories for a conversation, within a time limit, and the same ones for one turn of the user."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlane_client.client import AsyncMemlane
from memlane_client.context import fenced
from memlane_client.errors import MemlaneError

MOST_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Recalled:
    """Text for the prompt, and the words for `X-Memlane-Search`."""

    context: str
    report: str


@dataclass(slots=True)
class Recall:
    """Searches. An agent's requests in one turn of the user get the same text as the first one.

    So the provider's cache holds while the agent works with tools, and each turn is one search. A
    new turn is searched for again, also if it has the words of an earlier one.
    """

    memlane: AsyncMemlane
    max_tokens: int
    timeout_s: float
    _turns: OrderedDict[bytes, Recalled] = field(default_factory=OrderedDict)

    async def memories(
        self, conversation: Sequence[Mapping[str, Any]], user_id: str, *, goes_on: bool
    ) -> Recalled:
        """The memories of this user for the conversation; none if Memlane does not answer.

        `goes_on`: the request continues a turn of the user.
        """
        key = hashlib.sha256(json.dumps([user_id, conversation]).encode()).digest()
        if not goes_on:
            self._turns.pop(key, None)
        elif (known := self._turns.get(key)) is not None:
            self._turns.move_to_end(key)
            return known
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self.memlane.search(
                    conversation, user_id=user_id, max_tokens=self.max_tokens
                )
        except TimeoutError:
            return Recalled("", f"unavailable; no answer within {self.timeout_s:g} s")
        except MemlaneError as error:
            return Recalled("", f"unavailable; {type(error).__name__}")
        recalled = Recalled(fenced(answer), f"ok; results={len(answer.results)}")
        self._turns[key] = recalled
        if len(self._turns) > MOST_REMEMBERED:
            self._turns.popitem(last=False)
        return recalled

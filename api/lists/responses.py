"""Responses to lists of memories."""

from __future__ import annotations

from api.http.shared_responses import PageKeysJson
from api.lists.after_event import AfterEventJson
from api.memories.responses import MemoryRowJson


class ListPageJson(PageKeysJson, AfterEventJson):
    """A page of memories, and the status of the event of `after_event`."""

    results: list[MemoryRowJson]

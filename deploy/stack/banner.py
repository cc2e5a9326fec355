"""Message of `up` once everything runs: URL, key and first commands."""

from __future__ import annotations

import json
import shlex

from deploy.stack.failure import StackError
from deploy.stack.journal import State
from deploy.stack.layout import Layout, recovery_line

# Seconds to wait for a link: the message must not wait for it.
LINK_WITHIN_S = 5.0
FIRST_WORDS = {
    "user_id": "alice",
    "messages": [{"role": "user", "content": "I moved to Lisbon and I am allergic to peanuts."}],
}

BANNER = """\
Memlane is up.

  API        {url}
  key        {key}
  console    {console}
  LLM        {llm}
  embedder   {embedder}
  data       {root}  (one log a process in logs/)

Remember something:

  curl -s {url}/v3/memories/add/ \\
    -H "Authorization: Token $(cat {key_file})" -H 'Content-Type: application/json' \\
    -d '{body}'

Read its receipt (replace EVENT_ID by the event_id of the answer):

  curl -s {url}/v1/event/EVENT_ID/ -H "Authorization: Token $(cat {key_file})"
"""
SHORT = "Memlane is up: {url}, key {key}, LLM {llm}\n"

RULES = (
    "local/rules: fixed rules, NOT a language model, good for trying things out.\n"
    "             Set MEMLANE_LLM__MODEL (and ..__API_KEY) to use a real one."
)
MINILM = "local/minilm: MiniLM in process, 384 dimensions"


def banner(layout: Layout, state: State, *, show_key: bool = True) -> str:
    """The message for a healthy stack.

    `show_key`: print the key, and a link that signs in to the console; not for output that is
    stored.
    """
    warnings = "".join(f"\nWarning: {text}\n" for text in state.warnings)
    return warnings + BANNER.format(
        url=state.url,
        key=_key(layout, show=show_key),
        console=(show_key and _link(layout, state)) or f"{state.url}/console/",
        key_file=shlex.quote(str(layout.api_key)),
        llm=RULES if state.llm == "local/rules" else state.llm,
        embedder=MINILM if state.embedder == "local/minilm" else state.embedder,
        root=layout.root,
        body=json.dumps(FIRST_WORDS),
    )


def short(layout: Layout, state: State) -> str:
    """One line for a healthy stack."""
    warnings = "".join(f"Warning: {text}\n" for text in state.warnings)
    return warnings + SHORT.format(url=state.url, key=_key(layout, show=False), llm=state.llm)


def _link(layout: Layout, state: State) -> str | None:
    """A one-time link to the console; None if this API has none."""
    # Here, because the supervisor imports this module: the HTTP client would take 10 MB of it.
    from deploy.cli.connection import ApiConnection  # noqa: PLC0415

    if (key := layout.key()) is None:
        return None
    try:
        with ApiConnection(state.url, key, timeout_s=LINK_WITHIN_S) as api:
            made = api.post("/v1/console/links/")
    except StackError:
        return None
    return f"{made['url']}  (once, within 10 minutes)" if "url" in made else None


def _key(layout: Layout, *, show: bool) -> str:
    """The key, or where it is; how to create one if the file is lost, or on another host."""
    key = layout.key()
    if key is None:
        return f"in no file here; `{recovery_line(layout.api_key)}` creates one"
    return key if show else f"in {layout.api_key}"

"""What `up` says when everything runs: where, with which key, and what to type first."""

from __future__ import annotations

import json

from deploy.stack.journal import State
from deploy.stack.layout import Layout

FIRST_WORDS = {
    "user_id": "alice",
    "messages": [{"role": "user", "content": "I moved to Lisbon and I am allergic to peanuts."}],
}

BANNER = """\
Memlane is up.

  API        {url}
  key        {key}
  LLM        {llm}
  embedder   {embedder}
  data       {root}  (one log a process in logs/)

Remember something:

  curl -s {url}/v3/memories/add/ \\
    -H 'Authorization: Token {key}' -H 'Content-Type: application/json' \\
    -d '{body}'

What became of it (put the event_id of the answer in place of EVENT_ID):

  curl -s {url}/v1/event/EVENT_ID/ -H 'Authorization: Token {key}'
"""

RULES = (
    "local/rules: fixed rules, NOT a language model, good for trying things out.\n"
    "             Set MEMLANE_LLM__MODEL (and ..__API_KEY) to use a real one."
)
MINILM = "local/minilm: MiniLM in process, 384 dimensions"


def banner(layout: Layout, state: State) -> str:
    """The text for a healthy stack; it shows the API key."""
    return BANNER.format(
        url=state.url,
        key=_key(layout),
        llm=RULES if state.llm == "local/rules" else state.llm,
        embedder=MINILM if state.embedder == "local/minilm" else state.embedder,
        root=layout.root,
        body=json.dumps(FIRST_WORDS),
    )


def _key(layout: Layout) -> str:
    if layout.api_key.exists():
        return layout.api_key.read_text().strip()
    return "YOUR_KEY"  # the database was set up from another data directory, which holds the key

"""A chat loop with memory: search, answer and add, without waiting until the memory is stored.

    python assistant_loop.py --user maya

Type a line, /memories or /quit. Replace `answer` with a call of your language model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from memlane_wait import Memlane, connect, parser

PROMPT = """You are a helpful assistant. You know this about the user:
{memories}
"""


def answer(prompt: str, line: str) -> str:
    """A placeholder for a language model: repeats what the prompt says about the user."""
    known = [row.removeprefix("- ") for row in prompt.splitlines() if row.startswith("- ")]
    return f"I remember: {'; '.join(known)}." if known else f"You said: {line}"


def turn(memory: Memlane, user_id: str, line: str) -> tuple[str, str]:
    """One turn of the chat. Returns the answer, and the id of the event that stores the turn."""
    memories = memory.search(line, user_id=user_id)
    prompt = PROMPT.format(memories="\n".join(f"- {text}" for text in memories) or "nothing yet")
    reply = answer(prompt, line)
    messages = [{"role": "user", "content": line}, {"role": "assistant", "content": reply}]
    # Returns within milliseconds: the facts are extracted while the user reads the answer.
    return reply, memory.add(messages, user_id=user_id)


def chat(memory: Memlane, user_id: str, lines: Iterable[str]) -> None:
    """Answer each line, and list the memories for /memories, until /quit."""
    event_id = None
    for line in (text.strip() for text in lines):
        match line:
            case "":
                continue
            case "/quit":
                break
            case "/memories":
                if event_id:
                    memory.wait(event_id)  # so that the list includes the last turn
                for row in memory.memories(user_id=user_id):
                    print(f"  {row['memory']}")
            case _:
                reply, event_id = turn(memory, user_id, line)
                print(reply, flush=True)


if __name__ == "__main__":
    command_line = parser("Chat with an assistant that remembers.")
    command_line.add_argument("--user", default="maya")
    options = command_line.parse_args()
    chat(connect(options), options.user, sys.stdin)

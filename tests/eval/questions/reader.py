"""A model that answers questions from a context, a model that judges answers, and a stand-in."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.provider_calls import RemoteModel
from tests.eval.questions.conversations import UNKNOWN, Conversation, Question
from tests.eval.questions.scores import f1

ANSWER = f"""Answer the question from the context alone, in its language, in the fewest words.
Each line of the context begins with the day on which it was said. Resolve relative dates. A later
line counts more than an earlier one. If the context does not answer the question: {UNKNOWN}.

## Context
{{context}}

## Question
{{question}}"""
JUDGE = """Compare an answer with the expected one. It is right if it means the same or says more
without contradicting it; wording, language and date formats do not matter. Reply with one word:
right or wrong.

## Question
{question}

## Expected
{expected}

## Answer
{answer}"""
_PARTS = re.compile(r"^## (\w+)\n(.*?)(?=\n\n## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Reply:
    text: str
    tokens: int
    seconds: float


class Reader:
    """A live model, or the stand-in."""

    def __init__(self, remote: RemoteModel) -> None:
        self._llm = LiteLLM(remote)

    async def answer(self, question: Question, context: str) -> Reply:
        return await self._ask(ANSWER.format(context=context, question=question.ask))

    async def judge(self, question: Question, answer: str) -> bool:
        """True if the answer is right."""
        prompt = JUDGE.format(question=question.ask, expected=question.answer, answer=answer)
        return "right" in (await self._ask(prompt)).text.casefold()

    async def _ask(self, prompt: str) -> Reply:
        began = time.perf_counter()
        reply = await self._llm.chat([{"role": "user", "content": prompt}], temperature=0)
        seconds = time.perf_counter() - began
        return Reply(reply.text.strip(), reply.prompt_tokens + reply.completion_tokens, seconds)


class PerfectReader:
    """Stand-in: it keeps every message as a memory, and answers if the context has the evidence.

    So its figures say how often the context has what is needed, and nothing of a model's quality.
    """

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._questions = {q.ask: q for c in conversations for q in c.questions}

    async def __call__(self, kind: str, prompt: str) -> str:
        if kind == "extract":
            return json.dumps({"facts": _every_message(prompt)}, ensure_ascii=False)
        if kind == "decide":
            return json.dumps({"decisions": _add_all(prompt)})
        if kind == "summary":
            return json.dumps({"summary": "A long conversation."})
        parts = dict(_PARTS.findall(prompt))
        if "Expected" in parts:
            return "right" if f1(parts["Answer"], parts["Expected"]) > 0.5 else "wrong"
        question = self._questions[parts["Question"].strip()]
        complete = all(text in parts["Context"] for text in question.evidence)
        return question.answer if complete else UNKNOWN


_TURN = re.compile(
    r'^(\d+) (?:user|assistant)(?: ("(?:[^"\\]|\\.)*"))?: ("(?:[^"\\]|\\.)*")$', re.MULTILINE
)
_FACT = re.compile(r'^(\d+)(?: \([^)\n]*\))?: "', re.MULTILINE)


def _every_message(prompt: str) -> list[dict[str, object]]:
    turns = _TURN.findall(prompt.rpartition("## Messages\n")[2])
    return [
        {
            "messages": [int(number)],
            "text": f"{json.loads(name)}: {json.loads(text)}",
            "categories": [],
        }
        for number, name, text in turns
    ]


def _add_all(prompt: str) -> list[dict[str, object]]:
    facts = _FACT.findall(prompt.rpartition("## Facts\n")[2])
    return [
        {"fact": int(n), "action": "ADD", "target": None, "text": None, "reason": "New."}
        for n in facts
    ]

"""The stand-in of the scenarios: a good or a bad model behind an OpenAI-compatible API."""

from __future__ import annotations

from collections.abc import Sequence

from tests.eval.scenarios.bad import Answers
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.oracle import Oracle
from tests.eval.tokens import tokens
from tests.support.llm_server import LLMServer


class ScenarioServer(LLMServer):
    """Stand-in that knows the dialogues; `answers.behaviour` says how it answers."""

    def __init__(self, scenarios: Sequence[Scenario], answers: Answers | None = None) -> None:
        self.answers = answers or Answers(Oracle(scenarios))
        super().__init__(answers=self.answers, tokens=tokens)

"""Requests about replays of a scope."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from api.http.body import OwnRequest, ScopeRequest, examples
from api.http.limits import InstructionText
from pipeline.domain.errors import InvalidInput
from pipeline.domain.limits import LONGEST_NAME
from pipeline.model_settings import RULES
from pipeline.replays.service import MOST_EVENTS
from pipeline.replays.store import ReplayLimits, ReplayOptions
from pipeline.settings import Settings


class BeginRequest(ScopeRequest):
    """The scope whose events are replayed, and the changes for this replay."""

    model_config = examples({"user_id": "maya", "answers": "recorded"})

    custom_instructions: InstructionText | None = Field(
        default=None, description="For every event, in place of its own and the project's."
    )
    llm_model: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        description="The configured model, or one that `MEMLANE_REPLAY_MODELS` lists.",
    )
    embedder_model: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        description="The configured one, or one that `MEMLANE_REPLAY_MODELS` lists.",
    )
    answers: Literal["fresh", "recorded"] = Field(
        default="fresh",
        description="`recorded` asks no model: each batch gets the answers it got then.",
    )

    @model_validator(mode="after")
    def changes_are_valid(self) -> BeginRequest:
        """Refuse changes together with recorded answers."""
        if self.answers == "recorded" and (self.custom_instructions or self.llm_model):
            raise ValueError(
                "recorded answers fit only the recorded questions:"
                " leave out custom_instructions and llm_model, or ask for fresh answers"
            )
        return self

    def options(self, settings: Settings) -> ReplayOptions:
        """The changes for the replay. Errors: InvalidInput for a model that is not allowed, or for
        instructions that the model cannot read.
        """
        if self.llm_model:
            settings.llm.named(self.llm_model, settings.replay_models)
        if self.embedder_model:
            settings.embedder.named(self.embedder_model, settings.replay_models)
        if self.custom_instructions and settings.llm.model == RULES:
            raise InvalidInput(
                f"{RULES} does not read custom_instructions: leave them out, or configure a"
                " language model with MEMLANE_LLM__MODEL."
            )
        recorded = self.answers == "recorded"
        return ReplayOptions(
            self.custom_instructions, self.llm_model, self.embedder_model, recorded
        )


class SwitchRequest(OwnRequest):
    """Options of a switch. `force` switches even if edits by people are lost or events failed."""

    force: bool = False


def limits(settings: Settings) -> ReplayLimits:
    """Limits of replays from the settings."""
    return ReplayLimits(
        log=MOST_EVENTS,
        open=settings.max_project_replays,
        waiting=settings.max_project_events,
    )

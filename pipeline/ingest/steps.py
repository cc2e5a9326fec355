"""Steps: which code runs for an activation, and which stages follow without a message."""

from __future__ import annotations

from enum import StrEnum

from pipeline.domain.events import AddOptions, EventType, StageName
from pipeline.domain.lanes import Batch
from pipeline.ingest.dry_run import without_effects
from pipeline.ingest.modes import choose_mode, mode_of_started, require_budget
from pipeline.ingest.services import Services
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.answer import answer
from pipeline.ingest.stages.apply import apply
from pipeline.ingest.stages.consolidate import consolidate
from pipeline.ingest.stages.extract import extract
from pipeline.ingest.stages.import_lines import import_lines
from pipeline.ingest.stages.profile import generate, store
from pipeline.ingest.stages.relate import relate
from pipeline.ingest.stages.retrieve import retrieve
from pipeline.models.override import Chosen, choose
from pipeline.models.rehearsed import RehearsedModel
from pipeline.ports import MemoryModel

# Stages of a few milliseconds: they run in the task of the stage before them, because a message
# costs more CPU than they do.
ASK_NO_MODEL = (StageName.RETRIEVE, StageName.APPLY)


class Step(StrEnum):
    """Coroutine that a stage runs. An export or a summary runs ANSWER in the place of EXTRACT; a
    profile runs GENERATE, and STORE in the place of APPLY.
    """

    ANSWER = "answer"
    GENERATE = "generate"
    STORE = "store"
    EXTRACT = "extract"
    RETRIEVE = "retrieve"
    CONSOLIDATE = "consolidate"
    APPLY = "apply"
    RELATE = "relate"


def step_of(stage: StageName, options: AddOptions) -> Step:
    """The step that a stage runs for events of these options."""
    if options.question is None:
        return Step(stage)
    if options.question.kind is not EventType.PROFILE:
        return Step.ANSWER
    return Step.GENERATE if stage is StageName.EXTRACT else Step.STORE


def follows_at_once(stage: StageName, options: AddOptions) -> bool:
    """Tell if a stage runs right after the one before it, without a message in between.

    Such a stage calls no language model, or a client waits for the event.
    """
    return stage in ASK_NO_MODEL or not options.infer


async def perform(stage: StageName, batch: Batch, services: Services) -> Finished:
    """Run the stage's step on the batch. It only reads; the caller commits what it returns.

    An import has one stage, which calls no model but the embedder.
    """
    if batch.options.records is not None:
        transfers = services.ledger.transfers
        return await import_lines(batch, embedder=services.embedder, transfers=transfers)
    finished = await _perform(stage, batch, services)
    return finished if batch.options.dry_run is None else without_effects(finished)


async def _perform(stage: StageName, batch: Batch, services: Services) -> Finished:
    """Run the stage's step with the models of the batch."""
    configured = Chosen(services.model, services.embedder, services.index)
    chosen = choose(batch, configured, services.model_factory, services.ledger)
    model, embedder, memories = chosen.model, chosen.embedder, services.ledger.memories
    if batch.options.dry_run is not None or batch.answers_kept:
        model = RehearsedModel(model, batch, services.ledger.kept_answers)
    match step := step_of(stage, batch.options):
        case Step.ANSWER | Step.GENERATE | Step.STORE:
            return await _answer(step, batch, model, services)
        case Step.EXTRACT:
            asks = batch.options.infer or batch.options.procedural
            mode = await choose_mode(batch, services.ledger) if asks else None
            return await extract(batch, model=model, memories=memories, mode=mode)
        case Step.RETRIEVE:
            return await retrieve(
                batch,
                embedder=embedder,
                index=chosen.index,
                memories=memories,
                words=services.ledger.passages,
                limit=services.neighbours,
            )
        case Step.CONSOLIDATE:
            lower = await mode_of_started(batch, services.ledger)
            return await consolidate(batch, model=model, mode=lower)
        case Step.APPLY:
            return await apply(
                batch,
                embedder=embedder,
                memories=memories,
                graph=services.ledger.graph,
                relates=services.graph,
                retire_share=services.retire_share,
            )
        case Step.RELATE:
            await require_budget(batch, services.ledger)
            graph = services.ledger.graph
            return await relate(
                batch, model=model, embedder=embedder, graph=graph, memories=memories
            )


async def _answer(step: Step, batch: Batch, model: MemoryModel, services: Services) -> Finished:
    """Run the step of a question: only the first one asks the model."""
    ledger = services.ledger
    if step is Step.STORE:
        return await store(batch)
    await require_budget(batch, ledger)
    if step is Step.GENERATE:
        profiles = ledger.profiles
        return await generate(batch, model=model, memories=ledger.memories, profiles=profiles)
    return await answer(batch, model=model, memories=ledger.memories, versions=ledger.versions)

"""Long and hostile messages: `local/rules` reads them in linear time, within documented limits."""

import asyncio
import time
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.adapters.model_rules import RulesModel, decide
from pipeline.adapters.model_rules.extract import (
    MOST_BATCH_CHARS,
    MOST_BATCH_FACTS,
    MOST_CONTEXT_CHARS,
    MOST_MESSAGE_CHARS,
    NOT_UNDERSTOOD,
    TOO_LONG,
    extract_facts,
)
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact, Neighbour, Outcome
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest

SAID_AT = datetime(2026, 3, 9, 18, 30, tzinfo=UTC)
# Each of these takes milliseconds in linear time; quadratic code took 5 to 60 s.
BOUND_S = 5.0


def request(content: str) -> ExtractionRequest:
    message = Message(Role.USER, content)
    return ExtractionRequest([SourcedMessage(Source(0, 0), message, SAID_AT)])


def filled(unit: str, tail: str = "") -> str:
    """`unit`, repeated to the maximum length of a message that is read."""
    return unit * ((MOST_MESSAGE_CHARS - len(tail)) // len(unit)) + tail


HOSTILE = {
    "openers": filled("so "),
    "closers": filled(" too", "\n"),
    "blanks": filled(" ", "a"),
    "blank lines": filled("\n ", "a"),
    "tabs before a dash": filled("\t", "-a"),
    "marks before a word": filled("!", "a"),
    "ellipses": filled("\u2026 .", "a"),
    "closing quotes": filled('.")', "a"),
    "brackets": filled('")', "a"),
    "fences": filled("```a"),
    "one word": filled("a"),
    "apostrophes": filled("a'"),
    "relatives": filled("my sister "),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_message_is_read_in_linear_time(text: str) -> None:
    started = time.process_time()
    answer = extract_facts(request(text))
    assert (answer.value, answer.note) == ((), NOT_UNDERSTOOD)
    assert time.process_time() - started < BOUND_S


@pytest.mark.parametrize("before", ["so " * 100, " " * 1_000, "!" * 1_000, "x" * 1_000 + ". "])
def test_a_statement_after_noise_is_still_read(before: str) -> None:
    answer = extract_facts(request(f"{before}\nso, well, I live in Turin too, by the way!"))
    assert [fact.text for fact in answer.value] == ["User lives in Turin"]


def test_a_message_over_the_limit_is_not_read_and_the_note_states_the_limit() -> None:
    answer = extract_facts(request("so " * 20_000))
    assert (answer.value, answer.note) == ((), TOO_LONG)
    assert f"{MOST_MESSAGE_CHARS:,}" in TOO_LONG


async def test_a_long_list_of_facts_is_cut_at_the_limit_and_decided_fast() -> None:
    content = "".join(f"I like sport{at}. I have a cat{at}. " for at in range(400))
    started = time.process_time()
    model = RulesModel()
    answer = await model.extract(request(content))
    assert (len(answer.value), answer.note) == (MOST_BATCH_FACTS, TOO_LONG)
    assert len((await model.decide(answer.value, [], Instructions())).value) == MOST_BATCH_FACTS
    assert time.process_time() - started < BOUND_S


def test_events_beyond_the_characters_of_a_batch_are_left_out_and_named() -> None:
    long = "I like tea. " * (MOST_MESSAGE_CHARS // len("I like tea. "))
    events = MOST_BATCH_CHARS // len(long) + 1
    messages = [
        SourcedMessage(Source(event, 0), Message(Role.USER, long), SAID_AT)
        for event in range(events)
    ]
    answer = extract_facts(ExtractionRequest(messages))
    assert [fact.source.event for fact in answer.value] == list(range(events - 1))
    assert (answer.note, answer.left_out) == (TOO_LONG, (events - 1,))


@pytest.mark.parametrize(("chars", "facts"), [(0, 1), (MOST_CONTEXT_CHARS, 0)])
def test_only_the_end_of_the_context_is_read(chars: int, facts: int) -> None:
    extraction = request("She lives in Porto.")
    context = [Message(Role.USER, "My sister Ines called."), Message(Role.USER, "." * chars)]
    answer = extract_facts(ExtractionRequest(extraction.messages, context))
    assert len(answer.value) == facts


@pytest.mark.parametrize("events", [1, 8])
def test_what_is_read_of_an_event_does_not_depend_on_its_batch(events: int) -> None:
    # A batch of several events has up to 6,000 tokens, which are fewer characters than 8 of these.
    long = "I like tea. " * 500
    messages = [
        SourcedMessage(Source(event, 0), Message(Role.USER, long), SAID_AT)
        for event in range(events)
    ]
    answer = extract_facts(ExtractionRequest(messages))
    assert [fact.source.event for fact in answer.value] == list(range(events))
    assert answer.left_out == ()


def test_hostile_words_to_exclude_are_read_in_linear_time() -> None:
    extraction = request("I like tea. I like jazz.")
    excluding = Instructions(excludes=" " * 20_000 + "jazz")
    started = time.process_time()
    answer = extract_facts(ExtractionRequest(extraction.messages, (), excluding))
    assert [fact.text for fact in answer.value] == ["User likes tea"]
    assert time.process_time() - started < BOUND_S


def test_the_events_of_which_text_was_not_read_are_named() -> None:
    read, too_long = Message(Role.USER, "I like tea."), Message(Role.USER, "so " * 20_000)
    messages = [
        SourcedMessage(Source(event, 0), message, SAID_AT)
        for event, message in enumerate([read, too_long, read])
    ]
    answer = extract_facts(ExtractionRequest(messages))
    assert [fact.source.event for fact in answer.value] == [0, 2]
    assert answer.left_out == (1,)


def test_the_events_behind_the_last_fact_that_fits_are_named() -> None:
    many = "".join(f"I like sport{at}. " for at in range(MOST_BATCH_FACTS - 1))
    contents = ["I like tea. ", many, "I like jazz.", "I like chess."]
    messages = [
        SourcedMessage(Source(event, 0), Message(Role.USER, content), SAID_AT)
        for event, content in enumerate(contents)
    ]
    answer = extract_facts(ExtractionRequest(messages))
    assert (len(answer.value), answer.note) == (MOST_BATCH_FACTS, TOO_LONG)
    assert answer.left_out == (2, 3)


def test_a_fact_is_compared_with_the_nearest_memories_only() -> None:
    fact = Fact("User likes tea", Source(0, 0), Role.USER)
    far = Neighbour(UUID(int=0), "User likes tea", 0.1)
    near = [
        Neighbour(UUID(int=at + 1), f"User likes sport{at}", 0.9)
        for at in range(decide.MOST_COMPARED)
    ]
    assert decide.decide_facts([fact], [far, *near[1:]])[0].outcome is Outcome.NOOP
    assert decide.decide_facts([fact], [far, *near])[0].outcome is Outcome.ADD


async def test_the_event_loop_turns_while_a_long_message_is_read() -> None:
    reading = asyncio.ensure_future(RulesModel().extract(request(filled("I like tea and so. "))))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    # If the message were read on the event loop, it would turn only twice: at start and end.
    assert turns > 10
    assert reading.result().value


async def test_an_event_without_facts_states_what_local_rules_reads() -> None:
    answer = await RulesModel().extract(request("hey im a backend dev at stripe, ich wohne in Ulm"))
    assert answer.value == ()
    assert answer.note == NOT_UNDERSTOOD
    assert "MEMLANE_LLM__MODEL" in NOT_UNDERSTOOD

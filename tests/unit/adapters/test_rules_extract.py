"""Extraction by `local/rules`: one table of chat lines and the facts they give."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest, MemoryModel

# A Monday, so that "next Friday" is the 13th and "last Sunday" the day before.
SAID_AT = datetime(2026, 3, 9, 18, 30, tzinfo=UTC)


def request(*lines: str, role: Role = Role.USER, name: str | None = None) -> ExtractionRequest:
    messages = [
        SourcedMessage(Source(0, at), Message(role, line, name), SAID_AT)
        for at, line in enumerate(lines)
    ]
    return ExtractionRequest(messages)


async def texts(*lines: str, name: str | None = None) -> list[str]:
    answer = await RulesModel().extract(request(*lines, name=name))
    return [fact.text for fact in answer.value]


STATED = [
    # name, age, origin
    ("Hi, I'm Nadia!", ["User's name is Nadia"]),
    ("my name is otto", ["User's name is Otto"]),
    ("I'm Tom, 42, from Dublin.",
     ["User's name is Tom", "User is 42 years old", "User is from Dublin"]),
    ("I'm originally from Ghana.", ["User is from Ghana"]),
    ("I turned 30 yesterday.", ["User is 30 years old (since 2026-03-08)"]),
    ("My birthday is on March 3rd.", ["User's birthday is March 3"]),
    ("I am German.", ["User is German"]),
    # residence
    ("I live in Turin and work as a baker at Forno Blu.",
     ["User lives in Turin", "User works as a baker at Forno Blu"]),
    ("I just moved from Ghent to Bruges last Monday.",
     ["User lives in Bruges (moved from Ghent on 2026-03-02)"]),
    ("We\u2019ve relocated to Oslo.", ["User lives in Oslo"]),
    ("I've lived in Leeds for ten years.", ["User lives in Leeds (since 2016)"]),
    ("I used to live in Paris.", ["User used to live in Paris"]),
    ("I live alone", ["User lives alone"]),
    ("I live in Ghent with my husband Karl and our two kids.",
     ["User's husband is Karl", "User lives in Ghent with their husband Karl and their two kids"]),
    # work
    ("I work for Siemens as an engineer.", ["User works as an engineer at Siemens"]),
    ("I started a new job as a data analyst at Northwind last Monday.",
     ["User works as a data analyst at Northwind (started on 2026-03-02)"]),
    ("I quit my job at Siemens yesterday.",
     ["User no longer works at Siemens (left on 2026-03-08)"]),
    ("I left my job.", ["User left their job"]),
    ("I was promoted to team lead.", ["User works as team lead (promoted)"]),
    ("I'm a software developer at Initech", ["User works as a software developer at Initech"]),
    ("I'm retired.", ["User is retired"]),
    ("I teach maths at a school.", ["User teaches maths at a school"]),
    ("I usually work nights", ["User usually works nights"]),
    # likes and dislikes
    ("Nice is my favourite city", ["User's favourite city is Nice"]),
    ("I like hiking and chess, but I hate running.",
     ["User likes hiking", "User likes chess", "User hates running"]),
    ("I love fish and chips", ["User loves fish and chips"]),
    ("I like pizza but not pineapple.", ["User likes pizza", "User does not like pineapple"]),
    ("My favorite color is teal", ["User's favourite colour is teal"]),
    ("Ramen is my favourite food.", ["User's favourite food is Ramen"]),
    ("I prefer tea over coffee.", ["User prefers tea over coffee"]),
    ("I don't like jazz anymore.", ["User no longer likes jazz"]),
    ("I can't stand coriander any more", ["User hates coriander"]),
    ("I'm a huge fan of Arsenal", ["User likes Arsenal"]),
    # diet and health
    ("I'm allergic to peanuts and shellfish.",
     ["User is allergic to peanuts", "User is allergic to shellfish"]),
    ("I have a severe peanut allergy", ["User is allergic to peanuts"]),
    ("I've been vegan since January.", ["User is vegan (since 2026-01)"]),
    ("I'm not vegetarian anymore, I'm eating meat again.",
     ["User is no longer vegetarian", "User eats meat again"]),
    ("I don\u2019t eat meat.", ["User does not eat meat"]),
    ("I never drink alcohol", ["User never drinks alcohol"]),
    ("I stopped smoking in January.", ["User no longer smokes (since 2026-01)"]),
    ("I have ADHD and asthma.", ["User has ADHD", "User has asthma"]),
    # possessions and pets
    ("I have a dog named Rollo and two cats.", ["User has a dog named Rollo", "User has two cats"]),
    ("We adopted a cat last weekend. Her name is Miso. She loves tuna.",
     ["User adopted a cat on the weekend of 2026-03-07", "User has a cat named Miso",
      "Miso loves tuna"]),
    ("I drive a Tesla.", ["User drives a Tesla"]),
    ("I sold my Tesla last month.", ["User sold their Tesla in 2026-02"]),
    ("I no longer have a car.", ["User no longer has a car"]),
    ("My dog Rollo died yesterday.", ["User's dog Rollo died on 2026-03-08"]),
    # family
    ("My sister Ines lives in Porto.", ["User's sister is Ines", "Ines lives in Porto"]),
    ("My wife is a doctor and we have two kids.",
     ["User's wife works as a doctor", "User has two kids"]),
    ("My husband's name is Karl.", ["User's husband is Karl"]),
    ("I got married to Karl last Saturday.", ["User is married to Karl (since 2026-03-07)"]),
    ("My brother lives in Spain. He works as a chef.",
     ["User's brother lives in Spain", "User's brother works as a chef"]),
    ("I have a brother who works at Google.",
     ["User has a brother", "User's brother works at Google"]),
    ("My wife's birthday is 5 June.", ["User's wife's birthday is June 5"]),
    # languages, learning, hobbies
    ("I speak German, French and a little Spanish.",
     ["User speaks German", "User speaks French", "User speaks a little Spanish"]),
    ("I'm learning Japanese.", ["User is learning Japanese"]),
    ("I play the piano and go climbing on Tuesdays.",
     ["User plays the piano", "User goes climbing on Tuesdays"]),
    # plans and events
    ("I'm flying to Lisbon next Friday.", ["User plans to fly to Lisbon on 2026-03-13"]),
    ("I'll visit my aunt in Rome on 14 April.",
     ["User plans to visit their aunt in Rome on 2026-04-14"]),
    ("I ran a marathon last Sunday.", ["User ran a marathon on 2026-03-08"]),
    ("Yesterday I finished my thesis.", ["User finished their thesis on 2026-03-08"]),
    ("I have a dentist appointment on Thursday at 9.",
     ["User has a dentist appointment on 2026-03-12 at 9"]),
    ("My exam is in two weeks.", ["User's exam is in the week of 2026-03-23"]),
    ("We're moving to Ghent next month.", ["User plans to move to Ghent in 2026-04"]),
    ("We are getting married in May!", ["User plans to get married in 2026-05"]),
    ("I visited Japan in 2019.", ["User visited Japan in 2019"]),
    # requests to remember or to forget
    ("Remember that my locker code is 4411.", ["User's locker code is 4411"]),
    ("Please note that I prefer window seats.", ["User prefers window seats"]),
    ("Can you remember that I live in Turin?", ["User lives in Turin"]),
    ("Forget that I like jazz.", ["User asks to forget: likes jazz"]),
    ("Please forget what I said about my diet", ["User asks to forget: User's diet"]),
]  # fmt: skip

NOTHING = [
    "What is the capital of France?",
    "Do you know that I live in Turin?",
    "Thanks a lot!",
    "Good morning :)",
    "ok cool",
    "I'm OK",
    "I am so tired today",
    "If I lived in Rome, I would eat pasta and work as a chef.",
    "Maybe I should quit and move to Rome.",
    "I wish I had a dog.",
    "I'd love to visit Japan.",
    "I think I might move to Spain.",
    "I have a question",
    "I like your answer",
    "I love this song",
    "I need help with my code.",
    "I got an error yesterday",
    "Paris is in France.",
    "She likes tea.",
    "Forget it.",
    "Remind me to buy milk",
    "Translate 'I live in Turin' to French.",
    "My boss is terrible.",
    "My neighbours live in Kyiv.",
    "I lost my mind yesterday",
    "Is my sister Ines in Porto?",
    "```\nI live in Turin.\n```",
]


@pytest.mark.parametrize(("line", "facts"), STATED, ids=[line for line, _ in STATED])
async def test_a_statement_gives_its_facts_in_canonical_form(line: str, facts: list[str]) -> None:
    assert await texts(line) == facts


@pytest.mark.parametrize("line", NOTHING)
async def test_what_states_nothing_gives_nothing(line: str) -> None:
    assert await texts(line) == []


async def test_only_users_are_listened_to() -> None:
    for role in (Role.ASSISTANT, Role.SYSTEM):
        answer = await RulesModel().extract(request("I live in Turin.", role=role))
        assert answer.value == ()


async def test_a_given_name_is_the_subject_and_is_not_repeated_as_a_fact() -> None:
    facts = await texts("I'm Nadia. My cat is called Miso.", name="Nadia")
    assert facts == ["Nadia has a cat named Miso"]


async def test_a_fact_said_twice_is_one_fact_with_the_first_source() -> None:
    answer = await RulesModel().extract(request("I live in Turin.", "As I said, I live in Turin!"))
    assert [(fact.text, fact.source) for fact in answer.value] == [
        ("User lives in Turin", Source(0, 0))
    ]


async def test_the_source_and_the_speaker_are_those_of_the_message() -> None:
    answer = await RulesModel().extract(request("Hello!", "I like tea."))
    assert [(fact.source, fact.attributed_to) for fact in answer.value] == [
        (Source(0, 1), Role.USER)
    ]


async def test_context_explains_pronouns_and_gives_no_facts_of_its_own() -> None:
    extraction = request("She lives in Porto.")
    context = (Message(Role.USER, "My sister Ines called."),)
    answer = await RulesModel().extract(ExtractionRequest(extraction.messages, context))
    assert [fact.text for fact in answer.value] == ["Ines lives in Porto"]


async def test_excluded_words_withhold_a_fact() -> None:
    extraction = request("I have asthma. I like tea.")
    excluding = ExtractionRequest(extraction.messages, (), Instructions(excludes="asthma, salary"))
    answer = await RulesModel().extract(excluding)
    assert [fact.text for fact in answer.value] == ["User likes tea"]


async def test_it_costs_nothing_and_says_who_answered() -> None:
    model: MemoryModel = RulesModel()
    answer = await model.extract(request("I like tea."))
    assert (model.name, answer.usage.model, answer.usage.calls) == ("local/rules", "local/rules", 0)


DATES = [
    ("I ran 10 km {}.", "today", "on 2026-03-09"),
    ("I ran 10 km {}.", "the day before yesterday", "on 2026-03-07"),
    ("I ran 10 km {}.", "on Friday", "on 2026-03-06"),
    ("I ran 10 km {}.", "three days ago", "on 2026-03-06"),
    ("I ran 10 km {}.", "two months ago", "in 2026-01"),
    ("I ran 10 km {}.", "in June", "in 2025-06"),
    ("I ran 10 km {}.", "last summer", "in the summer of 2025"),
    ("I will run 10 km {}.", "tomorrow", "on 2026-03-10"),
    ("I will run 10 km {}.", "on Friday", "on 2026-03-13"),
    ("I will run 10 km {}.", "next week", "in the week of 2026-03-16"),
    ("I will run 10 km {}.", "in two weeks", "in the week of 2026-03-23"),
    ("I will run 10 km {}.", "in June", "in 2026-06"),
    ("I will run 10 km {}.", "in January", "in 2027-01"),
    ("I will run 10 km {}.", "on March 3rd", "on 2027-03-03"),
    ("I will run 10 km {}.", "on the 14th", "on 2026-03-14"),
    ("I will run 10 km {}.", "next year", "in 2027"),
    ("I will run 10 km {}.", "by Friday", "by 2026-03-13"),
]


@pytest.mark.parametrize(
    "line",
    [
        "I was moved to tears by the film, and then I moved to the couch.",
        "I moved to the search team.",
        "My name is on the list.",
        "my name is misspelled",
    ],
)
async def test_no_place_and_no_name_is_taken_for_one(line: str) -> None:
    assert await texts(line) == []


@pytest.mark.parametrize(("line", "phrase", "written"), DATES)
async def test_a_relative_date_is_made_absolute(line: str, phrase: str, written: str) -> None:
    (text,) = await texts(line.format(phrase))
    assert text.endswith(f"10 km {written}")


async def test_a_date_that_does_not_exist_stays_as_it_was_said() -> None:
    assert await texts("I visited Rome on February 31st.") == ["User visited Rome on February 31st"]


PIECES = st.sampled_from(
    [
        *("I", "we", "my", "User", "sister", "Ines", "live", "lives", "in", "Turin", "on", "next"),
        *("Friday", "and", "but", "not", "any more", "forget that", "'s", " who", ",", ".", "?"),
        *("likes", "has a dog named", "sold", "for 99 years", "March 31st", "since", "\u2019", "("),
    ]
)


@example("FORGET THAT AND")
@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map(" ".join)))
async def test_any_text_is_read_without_raising_and_always_the_same(text: str) -> None:
    first = await RulesModel().extract(request(text, text))
    again = await RulesModel().extract(request(text, text))
    assert first == again
    facts = [fact.text for fact in first.value]
    assert len(facts) == len(set(facts))
    assert all(text and text == text.strip() for text in facts)


@settings(max_examples=30, deadline=None)
@given(st.datetimes(timezones=st.just(UTC)))
async def test_any_time_of_speaking_will_do(said_at: datetime) -> None:
    line = Message(Role.USER, "I moved to Rome last week and fly to Oslo in 20 years, by Friday.")
    await RulesModel().extract(ExtractionRequest([SourcedMessage(Source(0, 0), line, said_at)]))

"""Another name that arrives after a later statement of it, and careless statements about names."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from pipeline.domain.graph.values import EndedEdge, NewEdge
from pipeline.text.statements.other_names import says_other_name
from tests.unit.domain.graph.graph_stories import Said, Story, edge, on, said

TIDEWATER, NORDLYS = "Halvor works_at Tidewater", "Bo works_at Nordlys"
WORKS = said(0, "Halvor works at Tidewater.", TIDEWATER)
NAMED = said(0, "Halvor is also known as Bo.", "Halvor also_known_as Bo")
LATER = said(90, "Bo works at Nordlys.", NORDLYS)

# One statement for each kind of form.
NAMES = """
Halvor is also known as Bo.                 | Halvor also_known_as Bo
Halvor is called Bo!                        | Halvor also_known_as Bo
Halvor goes by Bo.                          | Halvor also_known_as Bo
Halvor goes by the name of Bo.              | Halvor also_known_as Bo
Halvor's nickname is Bo.                    | Halvor also_known_as Bo
Bo is Halvor’s nickname.                    | Halvor also_known_as Bo
Edward is called Ed.                        | Edward also_known_as Ed
Al is also known as Alastair.               | Al also_known_as Alastair
Bo is short for Halvor.                     | Halvor also_known_as Bo
Everyone calls Halvor Bo.                   | Halvor also_known_as Bo
User's name is Nadia.                       | User named Nadia
Halvor wird Bo genannt.                     | Halvor also_known_as Bo
Halvors Spitzname ist Bo.                   | Halvor also_known_as Bo
Halvor hat den Spitznamen Bo.               | Halvor also_known_as Bo
Halvor ist auch als Bo bekannt.             | Halvor also_known_as Bo
Alle nennen Halvor Bo.                      | Halvor also_known_as Bo
El apodo de Halvor es Bo.                   | Halvor also_known_as Bo
A Halvor le llaman Bo.                      | Halvor also_known_as Bo
Halvor es conocido como Bo.                 | Halvor also_known_as Bo
Todos llaman Bo a Halvor.                   | Halvor also_known_as Bo
王磊的外号是小宝。                           | 王磊 also_known_as 小宝
大家都叫王磊小宝。                           | 王磊 also_known_as 小宝
用户的名字是王磊。                           | User named 王磊
"""
# Statements with both names that give none of them another name. A careless model may say so.
NO_NAMES = """
People call him Bo.                         | Halvor also_known_as Bo
Bo is also the name of Halvor's dog.        | Halvor also_known_as Bo
Halvor's dog is called Bo.                  | Halvor also_known_as Bo
Halvor is often mistaken for Bo.            | Halvor also_known_as Bo
Halvor is not called Bo.                    | Halvor also_known_as Bo
Halvor calls Ingmar Bo.                     | Halvor also_known_as Bo
Is Halvor also known as Bo?                 | Halvor also_known_as Bo
Halvor is also known as Bo?                 | Halvor also_known_as Bo
Halvor might be known as Bo.                | Halvor also_known_as Bo
Halvor was called Bo as a child.            | Halvor also_known_as Bo
Halvor and Bo share a nickname.             | Halvor also_known_as Bo
Halvor is called by Bo.                     | Halvor also_known_as Bo
No one calls Halvor Bo.                     | Halvor also_known_as Bo
Halvor's brother's nickname is Bo.          | Halvor also_known_as Bo
Halvor hates the nickname Bo.               | Halvor also_known_as Bo
Tove says Halvor is called Bo.              | Halvor also_known_as Bo
Halvor is called Bo and so is Ingmar.       | Halvor also_known_as Bo
Halvor is called Bob.                       | Halvor also_known_as Bo
Halvors Hund heißt Bo.                      | Halvor also_known_as Bo
Halvor wird oft mit Bo verwechselt.         | Halvor also_known_as Bo
Halvor wird nicht Bo genannt.               | Halvor also_known_as Bo
El perro de Halvor se llama Bo.             | Halvor also_known_as Bo
Halvor no es conocido como Bo.              | Halvor also_known_as Bo
王磊的狗叫小宝。                             | 王磊 also_known_as 小宝
王磊叫小宝来吃饭。                           | 王磊 also_known_as 小宝
"""

# Later statements that give no value, or that of another person. A careless model may say so.
CARELESS = """
Bo might work at Nordlys.
Bo will work at Nordlys.
Does Bo work at Nordlys?
Bo does not work at Nordlys.
Tove says that Bo works at Nordlys.
If Bo works at Nordlys, all is well.
Perhaps Bo works at Nordlys.
"Bo works at Nordlys" is a song.
Bo almost works at Nordlys.
Bo's brother works at Nordlys.
The brother of Bo works at Nordlys.
Bo arbeitet vielleicht bei Nordlys.
Bo arbeitet nicht bei Nordlys.
Wenn Bo bei Nordlys arbeitet, ist alles gut.
Bos Bruder arbeitet bei Nordlys.
Der Bruder von Bo arbeitet bei Nordlys.
Tove sagt, dass Bo bei Nordlys arbeitet.
Quizás Bo trabaja en Nordlys.
El hermano de Bo trabaja en Nordlys.
Bo no trabaja en Nordlys.
Bo podría trabajar en Nordlys.
Bo可能在Nordlys工作。
如果Bo在Nordlys工作就好了。
Bo的弟弟在Nordlys工作。
听说Bo在Nordlys工作。
Bo不在Nordlys工作。
"""


def rows(table: str) -> list[tuple[str, str]]:
    pairs = (line.split("|") for line in table.strip().splitlines())
    return [(text.strip(), words.strip()) for text, words in pairs]


@pytest.mark.parametrize(("text", "words"), rows(NAMES))
def test_a_statement_of_another_name_is_read(text: str, words: str):
    source, _, other = edge(words)
    assert says_other_name(text, source, other)
    assert says_other_name(text, other, source)


@pytest.mark.parametrize(("text", "words"), rows(NO_NAMES))
def test_a_statement_that_gives_no_other_name_ends_nothing(text: str, words: str):
    source, _, other = edge(words)
    assert not says_other_name(text, source, other)
    story = Story()
    story.arrive(said(90, f"{other} works at Nordlys.", f"{other} works_at Nordlys"))
    works = f"{source} works_at Tidewater"
    story.arrive(said(0, f"{source} works at Tidewater.", works), said(0, text, words))
    assert works in story.at(100)


@pytest.mark.parametrize(
    "statements",
    [
        (WORKS, NAMED, LATER),
        (
            said(0, "Halvor likes figs.", "Halvor likes figs"),
            NAMED,
            said(90, "Bo does not like figs.", "Bo dislikes figs"),
        ),
        (
            said(0, "Halvor wohnt in Bergen.", "Halvor lives_in Bergen"),
            said(0, "Halvors Spitzname ist Bo.", "Halvor also_known_as Bo"),
            said(90, "Bo wohnt in Lund.", "Bo lives_in Lund"),
        ),
        (NAMED, WORKS, replace(LATER, text="Bo also works at Nordlys.")),
    ],
)
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_another_name_in_any_order_gives_the_graphs_of_the_story_in_order(
    statements: tuple[Said, ...], order: tuple[int, ...]
):
    def graphs(arrivals: tuple[Said, ...]) -> list[set[str]]:
        story = Story()
        for statement in arrivals:
            story.arrive(statement)
        # The name under which a relation was said is not the story's.
        return [{words.replace("Bo ", "Halvor ") for words in story.at(day)} for day in (10, 100)]

    assert graphs(tuple(statements[place] for place in order)) == graphs(statements)


def late(*batches: tuple[Said, ...], added: bool = True) -> Story:
    story = Story(added=added)
    for batch in batches:
        story.arrive(*batch)
    return story


def test_the_name_and_the_former_value_in_one_batch_end_with_the_later_value():
    story = late((LATER,), (WORKS, NAMED))
    assert story.graph == [
        "Bo works_at Nordlys 90-",
        "Halvor also_known_as Bo 0-",
        f"{TIDEWATER} 0-90",
    ]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_model_may_state_the_names_in_either_order(order: tuple[int, ...]):
    named = said(0, "Bo is Halvor's nickname.", "Bo also_known_as Halvor")
    story = late(*((statement,) for statement in [(WORKS, named, LATER)[at] for at in order]))
    assert [TIDEWATER in story.at(day) for day in (10, 100)] == [True, False]


@pytest.mark.parametrize(
    "before",
    [
        said(-20, "Bo has a dog.", "Bo owns dog"),
        said(-20, "Bo lives in Ulm.", "Bo lives_in Ulm"),
        said(50, "Bo and Halvor are friends.", "Bo has_friend Halvor"),
        said(50, "Halvor dislikes Bo.", "Halvor dislikes Bo"),
        said(50, "User's brother Bo plays squash.", "User has_brother Bo", "Bo plays squash"),
        said(50, "User has a dog called Bo.", "User owns Bo"),
        said(95, "User's cat is called Bo.", "User has_pet Bo"),
    ],
)
def test_a_name_that_may_be_that_of_another_person_ends_nothing(before: Said):
    assert TIDEWATER in late((before,), (LATER,), (WORKS, NAMED)).at(100)


def test_a_name_that_two_persons_have_ends_nothing():
    other = said(0, "Ingmar is also known as Bo.", "Ingmar also_known_as Bo")
    story = Story()
    story.arrive(said(0, "Ingmar works at Fjordbank.", "Ingmar works_at Fjordbank"), other)
    story.arrive(LATER)
    story.arrive(WORKS, NAMED)
    assert TIDEWATER in story.at(100)


@pytest.mark.parametrize(
    "later",
    [
        replace(LATER, text="Bo worked at Nordlys in 2019."),
        replace(LATER, text="Bo also works at Nordlys."),
        replace(LATER, text="Bo has a second job."),
        replace(LATER, text="Bo plans to work there.", states=["Bo plans_works_at Nordlys"]),
        said(90, "Bo works at a bank.", "Bo works_at bank"),
        said(90, "Bo likes Nordlys.", "Bo likes Nordlys"),
        said(0, "Bo works at Nordlys.", NORDLYS),
        *(replace(LATER, text=text) for text in CARELESS.strip().splitlines()),
    ],
)
def test_a_later_statement_that_replaces_nothing_ends_nothing(later: Said):
    assert TIDEWATER in late((later,), (WORKS, NAMED)).at(100)


def test_a_value_that_is_said_again_after_the_later_one_stays():
    story = late((LATER,), (WORKS,))
    story.say_again(TIDEWATER, 95, "Halvor works at Tidewater.")
    story.arrive(NAMED)
    assert TIDEWATER in story.at(100)


@pytest.mark.parametrize("protected", [True, False])
def test_a_protected_or_disputed_value_stays(protected: bool):
    story = late((WORKS,), (LATER,))
    [known] = [e for e in story.edges.values() if e.source == "Halvor"]
    story.edges[known.id] = replace(known, protected=protected, disputed=not protected)
    story.arrive(NAMED)
    assert TIDEWATER in story.at(100)


def test_a_value_in_an_open_conflict_with_the_later_one_stays():
    story = late((LATER,))
    story.beside = (story.memories[0].memory_id,)
    story.arrive(WORKS, NAMED)
    assert TIDEWATER in story.at(100)


def test_a_later_value_whose_memory_is_gone_ends_nothing():
    story = late((LATER,))
    [known] = story.edges.values()
    story.edges[known.id] = replace(known, text="", said_at=known.valid_from)
    story.arrive(WORKS, NAMED)
    assert TIDEWATER in story.at(100)


@pytest.mark.parametrize("batches", [[(LATER,), (WORKS, NAMED)], [(WORKS,), (LATER,), (NAMED,)]])
def test_the_event_of_the_later_statement_ends_the_former_value(
    batches: list[tuple[Said, ...]],
):
    story = late(*batches[:-1])
    plan = story.arrive(*batches[-1])
    [later] = [known for known in story.edges.values() if known.destination == "Nordlys"]
    closed: list[NewEdge | EndedEdge] = [new for new in plan.edges if new.valid_to]
    closed += plan.ended
    ends = [(ended.valid_to, ended.followed_by) for ended in closed]
    assert ends == [(on(90), later.event_id)]

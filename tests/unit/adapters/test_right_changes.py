"""Changes of memories and of the graph by a sentence, and those that `local/rules` must not make.

A line of `STORES` has the memories of a user, a message, and the memories after it; of `LEFT`
memories, and a message that ends none of them; of `DRAWN` a fact and its edges.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.consolidation.conservation import Replacement, objection
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact, Neighbour, Outcome
from pipeline.domain.graph.values import RelationRequest, StoredRelation
from pipeline.domain.messages import Source
from pipeline.ingest.stages.settled import is_related
from tests.support.right_facts import parts, read, table

STORES = """
User lives in Berlin => I moved to Hamburg. => User lives in Hamburg
User lives in Berlin => I live in Berlin. => User lives in Berlin
User lives in Berlin => I can't live in Berlin. => User lives in Berlin
User lives in Berlin => My savings moved to Barclays. => User lives in Berlin
User lives in Berlin => \
My sister lives in Rome. => \
User lives in Berlin | User's sister lives in Rome
User lives in Berlin => I used to live in Berlin. => User used to live in Berlin
User lives in Munich => I left Munich last month. I live in Vienna now. => User lives in Vienna
User's name is Nadia => I'm Happy. => User's name is Nadia
User's name is Nadia => I'm Catholic. => User's name is Nadia | User is Catholic
User's name is Nadia => I'm Iraqi. => User's name is Nadia | User is Iraqi
User's name is Nadia => My name is Nadja. => User's name is Nadja
User's blood type is A+ => My blood type is A-. => User's blood type is A-
User's favourite language is C++ => My favourite language is C. => User's favourite language is C
User's birthday is May 3 => My birthday is coming up. => User's birthday is May 3
User's birthday is May 3 => My birthday is May 4. => User's birthday is May 4
User is 34 years old => I turned 35. => User is 35 years old
User works as a nurse => I work as hard as I can. => User works as a nurse
User works as a nurse => I'm working as fast as I can. => User works as a nurse
User works as a nurse => I work at Charité. => User works as a nurse at Charité
User works at Charité => I work as a nurse. => User works as a nurse at Charité
User works at a bank => I quit my job. => User no longer works at a bank
User works at Nordwind => I retired in 2025. => User retired in 2025
User works as a nurse => \
I've worked at Charité since 2015. => \
User works as a nurse at Charité (since 2015)
User works as a nurse at Charité => \
I was promoted to team lead. => \
User works as team lead at Charité (promoted)
User works as a nurse at Charité => \
I work as a teacher at Greenwood. => \
User works as a teacher at Greenwood
User works as a nurse at Charité => I quit my job. => User no longer works as a nurse at Charité
User works at Acme => I lost my job at Acme. => User no longer works at Acme
User works at Acme => I quit my job. => User no longer works at Acme
User works as a nurse => I quit my job. => User no longer works as a nurse
User works as a nurse => I resigned from my job. => User no longer works as a nurse
User works at Acme => I resigned from my position. => User no longer works at Acme
User works at Acme => I gave up my job. => User no longer works at Acme
User works at Acme => I resigned yesterday. => User no longer works at Acme (resigned on 2026-03-08)
User works as a nurse => I was laid off. => User no longer works as a nurse (laid off)
User works at Acme => My wife quit her job. => User works at Acme | User's wife quit her job
User works at Acme => I work at home. => User works at Acme | User works at home
User drives a Volvo => I drive a hard bargain. => User drives a Volvo
User drives a Volvo => I drive a Fiat. => User drives a Fiat
User drives a Volvo => I sold the Volvo. => User sold the Volvo
User owns a red Tesla => I sold my Tesla. => User sold their Tesla
User speaks French => I speak no French. => User does not speak French
User speaks French => I speak German. => User speaks French | User speaks German
User speaks French => I can speak French. => User speaks French
User likes jazz => I don't hate jazz. => User likes jazz
User likes jazz => I don't like jazz anymore. => User no longer likes jazz
User likes jazz => I hate jazz. => User hates jazz
User likes jazz => I love jazz. => User likes jazz
User likes jazz => I love opera. => User likes jazz | User loves opera
User hates jazz => I like jazz. => User likes jazz
User likes pizza => \
I don't like pizza with pineapple. => \
User likes pizza | User does not like pizza with pineapple
User prefers tea over coffee => I prefer coffee over tea. => User prefers coffee over tea
User is vegetarian => I'm vegan now. => User is vegan
User is vegetarian => I eat meat again. => User eats meat again
User does not eat meat => I eat meat again. => User eats meat again
User is married to Karl => I was single back then. => User is married to Karl
User is single => I was married for ten years. => User is single
User is single => I got married to Karl. => User is married to Karl
User is married to Karl => I'm engaged in a discussion. => User is married to Karl
User is dating Tom => I was dating Ann last year. => User is dating Tom
User has a dog named Rollo => My dog Rollo died yesterday. => User's dog Rollo died on 2026-03-08
User has a dog named Rollo => Rollo died yesterday. => Rollo died on 2026-03-08
User has a dog named Rollo => \
I have a dog named Pip. => \
User has a dog named Rollo | User has a dog named Pip
User has a dog => I have a dog named Rollo. => User has a dog named Rollo
User has a sister => My sister is Ines. => User's sister is Ines
User's friend is Karl => My friend is Emil. => User's friend is Karl | User's friend is Emil
User's husband is Karl => My husband is Emil. => User's husband is Emil
User's sister is Ines | Ines lives in Porto => \
My sister lives in Braga. => \
User's sister is Ines | User's sister lives in Braga
User plans to fly to Rome on 2026-04-14 => \
I cancelled my trip to Rome. => \
User cancelled their trip to Rome
User plans to fly to Rome on 2026-04-14 => \
I'm flying to Rome on 20 April. => \
User plans to fly to Rome on 2026-04-20
User's favourite colour is green => My favorite color is blue. => User's favourite colour is blue
User's favourite colour is green => \
My favourite food is ramen. => \
User's favourite colour is green | User's favourite food is ramen
User likes jazz => Forget jazz. => -
User likes jazz => Can you forget what I said about jazz? => -
User likes jazz => Forget that I like jazz. => -
User likes live jazz => Forget jazz. => -
User likes opera => Forget jazz. => User likes opera
User dislikes jazz => Forget that I like jazz. => User dislikes jazz
User's address is 5 Main Street => Forget my address. => -
User's sister is Anna => Delete everything you know about my sister. => -
User lives in Berlin | User likes tea => \
I moved to Oslo. I hate tea. => \
User lives in Oslo | User hates tea
User works as a baker => \
I'm not just a baker, I'm also a mother. => \
User works as a baker | User is not just a baker | User is a mother
User lives in Oslo => Forget where I live. => -
User lives in Oslo with Emil => I no longer live in Oslo. => User no longer lives in Oslo
User plays chess => I don't play chess. => User does not play chess
User plays chess => I no longer play chess. => User no longer plays chess
User smokes => I stopped smoking in January. => User no longer smokes (since 2026-01)
User works at Nordwind => I no longer work. => User no longer works
User works at Nordwind => \
I was fired yesterday. => \
User no longer works at Nordwind (fired on 2026-03-08)
User plans to fly to Rome on 2026-03-13 => \
I'm not flying to Rome on Friday. => \
User is not flying to Rome on 2026-03-13
User is allergic to eggs => \
I'm not allergic to eggs anymore. => \
User is no longer allergic to eggs
User's birthday party is on 2026-03-14 => \
My birthday party is on Sunday. => \
User's birthday party is on 2026-03-15
User lives in Italy => I don't live in Italy. => User does not live in Italy
User likes jelly => I don't like jelly. => User does not like jelly
"""

DRAWN = """
User's name is Nadia => User named Nadia
User lives in Turin (moved on 2026-03-02) => User lives_in Turin
User works as a nurse at Charité => User works_as nurse | User works_at Charité
User loves hiking => User likes hiking
User hates coriander => User dislikes coriander
User no longer likes jazz => User dislikes jazz
User has a dog named Rollo => User owns Rollo | Rollo is_a dog
User's dog Rollo died on 2026-03-08 => -
User's sister is Ines => User has_sister Ines
Ines lives in Porto => Ines lives_in Porto
User is married to Karl (since 2026-03) => User married_to Karl
User broke up with Karl => -
User plans to fly to Lisbon on 2026-03-13 => User plans_to_visit Lisbon
User cancelled their trip to Lisbon => -
User is vegan => User follows_diet vegan
User drives a Tesla => User drives Tesla
User sold the Tesla => -
User no longer works at Siemens => -
User quit their job => -
User asks to forget: likes jazz => -
"""

# Sentences that change no memory: limited, temporary, about the future, or without a name.
LEFT = """
User works as a baker => I'm not just a baker.
User works as a baker => I'm not only a baker.
User is a student => I'm not exactly a student.
User is left-handed => I'm not totally left-handed.
User plays chess => I don't just play chess.
User plays chess => I don't really play chess.
User speaks Welsh => I don't speak just Welsh.
User lives in Oslo => I don't just live in Oslo.
User is allergic to eggs => I'm not severely allergic to eggs.
User is allergic to eggs => I'm not terribly allergic to eggs.
User is allergic to eggs => I'm no longer severely allergic to eggs.
User is allergic to eggs and soy => I'm not only allergic to eggs but also to soy.
User is allergic to eggs | User is allergic to soy => I'm not allergic to eggs and soy together.
User likes opera => I don't like opera any more than you do.
User drinks tea => I don't drink coffee, just tea.
User drinks tea => I don't drink coffee, only tea.
User drinks tea => I don't drink coffee but tea.
User eats fish => I don't eat pork, just fish.
User speaks Dutch | User speaks Czech => I don't speak Greek, just Dutch and Czech.
User plays chess => I don't play poker, just chess.
User likes horses => I don't like goats, but horses.
User likes horses => I hate goats, not horses.
User plays chess => I can't play chess today.
User plays chess => I can't play chess on Friday.
User plays chess => I don't play chess this week.
User plays the flute => I can't play the flute until Friday.
User speaks Welsh => I can't speak Welsh today.
User drives a Fiat => I can't drive the Fiat today.
User drives a Fiat => I can't drive the Fiat tonight.
User works at Nordwind => I'm not working at Nordwind today.
User lives in Oslo => I'm not living in Oslo this month.
User is learning Greek => I'm not learning Greek today.
User is a student => I'm not really a student today.
User eats meat => I'm not eating meat in April.
User lives in Oslo => I don't live in Oslo alone.
User lives in Oslo => I don't live in Oslo for fun.
User does not eat meat => I don't eat meat today.
User works at Nordwind => I start a new job at Contoso next Monday.
User works at Nordwind => I start a job at Contoso in May.
User works at Nordwind => I start work at Contoso next month.
User's wife works at Nordwind => My wife starts a new job at Contoso in May.
User's father is Emil => Forget about us.
User's father is Emil => Forget where I was.
User's father is Emil => Forget what I did.
User's father is Emil => Delete what I have.
User's father is Emil => Stop remembering who I was.
User likes opera | User likes tea => Forget what I like.
User lives in Oslo => Before I moved to Ghent I lived in Bruges.
User works as a plumber => I have work at 8.
User works at Nordwind => I was fired in 2012.
User works at Nordwind => I was laid off two years ago.
User works at Nordwind => I quit my job in 2012.
User works at Nordwind => I quit smoking.
User works at Nordwind => I want to quit my job.
User works as a plumber => I want to quit my job.
User works at Nordwind => My brother quit his job.
User works as a plumber => My brother was fired yesterday.
User works at Nordwind => My brother resigned.
User works at Nordwind => I almost quit my job.
User works at Nordwind => I never quit my job.
User works at Nordwind => I didn't quit my job.
User works at Nordwind => I might quit my job.
User works at Nordwind => I quit my job search.
User works at Nordwind => I quit my side job.
User works at Nordwind => I quit my job at Contoso.
User works as a plumber => I quit my job as a waiter.
User works at Nordwind => I lost my position in the queue.
User works at Nordwind => I resigned from the board.
User works at Nordwind => I resigned myself to it.
User works at Nordwind => I gave up my seat.
User works at Nordwind => I wasn't fired.
User works at Nordwind => I was almost fired.
User works at Nordwind => I resigned in 2012.
User works at Nordwind => I was fired in March 2010.
User works as a plumber => I resigned in June 2011.
User works at Nordwind => I resign next month.
User works at Nordwind => I quit my old job.
User works as a plumber => I gave up my old job.
User is married to Emil => I'm in a relationship with chocolate.
User is married to Emil => I'm not happily married.
User plays chess => I can't play chess right now.
User plays chess => I can't play chess at the moment.
User drinks cider => I don't drink cider for now.
User likes opera => I don't like opera as much anymore.
User eats meat => I don't eat meat very often.
User has asthma => I don't have severe asthma.
User is allergic to nuts => I don't have a severe nut allergy.
User likes horses => I dislike goats and not horses.
User drinks cocoa => I stopped drinking tea, just cocoa.
User likes vegetables => I hate vegetables, except carrots.
User works at Nordwind => I've got a new job at Contoso next month.
User works at Nordwind => I work at Contoso from May.
User works at Nordwind => I got a job at Contoso starting in May.
User lives in Oslo => I live in Ghent from next month.
User is dating Emil => I'm seeing Anna tomorrow.
"""


async def after(before: list[str], line: str) -> list[str]:
    """The memories after a message."""
    store = {UUID(int=at + 1): text for at, text in enumerate(before)}
    memories = [Neighbour(memory_id, text, 0.84) for memory_id, text in store.items()]
    facts = await read(line)
    for decision in (await RulesModel().decide(facts, memories, Instructions())).value:
        target = decision.memory_id or UUID(int=1000 + decision.fact)
        if decision.outcome in (Outcome.ADD, Outcome.UPDATE):
            store[target] = decision.text or ""
        elif decision.outcome is Outcome.DELETE:
            del store[target]
    return list(store.values())


@pytest.mark.parametrize(("before", "line", "then"), table(STORES))
async def test_a_sentence_changes_what_it_is_about(before: str, line: str, then: str) -> None:
    assert await after(parts(before), line) == parts(then)


@pytest.mark.parametrize(
    ("before", "line", "then"), [row for row in table(STORES) if "no longer works" in row[2]]
)
async def test_the_end_of_a_job_is_compared_with_it_and_loses_nothing(
    before: str, line: str, then: str
) -> None:
    [fact] = await read(line)
    [memory] = await read(before.replace("User works", "I work"))
    change = Replacement(
        old=before, new=then, fact=fact.text, old_slot=memory.slot, fact_slot=fact.slot
    )
    assert objection(change) is None
    assert is_related(fact.text, fact.slot, before, memory.slot)


@pytest.mark.parametrize(("before", "line"), table(LEFT))
async def test_a_sentence_that_says_less_ends_no_memory(before: str, line: str) -> None:
    assert (await after(parts(before), line))[: len(parts(before))] == parts(before)


@pytest.mark.parametrize(("before", "line"), table(LEFT))
async def test_a_sentence_that_says_less_ends_no_edge(before: str, line: str) -> None:
    stored = [Fact(text, Source(0, 0)) for text in parts(before)]
    drawn = (await RulesModel().relate(RelationRequest(stored))).value.relations
    ends = [(row.source.name, row.relation, row.destination.name) for row in drawn]
    current = [StoredRelation(UUID(int=at), *end) for at, end in enumerate(ends)]
    changes = (await RulesModel().relate(RelationRequest(await read(line), current))).value
    assert changes.endings == ()


@pytest.mark.parametrize(("fact", "edges"), table(DRAWN))
async def test_a_fact_draws_the_right_edges(fact: str, edges: str) -> None:
    changes = (await RulesModel().relate(RelationRequest([Fact(fact, Source(0, 0))]))).value
    rows = [(row.source.name, row.relation, row.destination.name) for row in changes.relations]
    assert [" ".join(row) for row in rows] == parts(edges)

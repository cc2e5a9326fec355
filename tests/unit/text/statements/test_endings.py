"""Ends of states, habits and possessions, and the memories that they do not end."""

from __future__ import annotations

import pytest

from pipeline.text.statements.endings import ends, is_named, is_requested

ENDED = [
    ("User lives in Oslo.", "User used to live in Oslo."),
    ("User works at Bosch.", "User no longer works at Bosch."),
    ("User works at Bosch since 2019.", "User no longer works at Bosch."),
    ("User works at Bosch as an engineer.", "User does not work at Bosch anymore."),
    ("User has a bike.", "User sold the bike."),
    ("User owns a red bike.", "User sold their bike."),
    ("User eats meat.", "User stopped eating meat."),
    ("User loves jazz.", "User no longer likes jazz."),
    ("User has a dog.", "User has no dog any more."),
    ("Jonas wohnt in Oslo.", "Jonas wohnte früher in Oslo."),
    ("Jonas wohnt in Oslo.", "Jonas hat früher in Oslo gewohnt."),
    ("Jonas wohnt in Oslo.", "Jonas wohnt nicht mehr in Oslo."),
    ("Jonas isst Fleisch.", "Jonas isst kein Fleisch mehr."),
    ("Jonas arbeitet bei Bosch.", "Jonas arbeitet nicht mehr bei Bosch."),
    ("Jonas hat ein Fahrrad.", "Jonas hat das Fahrrad verkauft."),
    ("Lucía vive en Oslo.", "Lucía vivía antes en Oslo."),
    ("Lucía vive en Oslo.", "Lucía solía vivir en Oslo."),
    ("Lucía trabaja en Bosch.", "Lucía ya no trabaja en Bosch."),
    ("Lucía come carne.", "Lucía dejó de comer carne."),
    ("Lucía tiene una bicicleta.", "Lucía vendió la bicicleta."),
    ("Léa habite à Lyon.", "Léa n'habite plus à Lyon."),
    ("Léa mange de la viande.", "Léa ne mange plus de viande."),
    ("Léa a un vélo.", "Léa a vendu le vélo."),
    ("Léa mange de la viande.", "Léa a arrêté de manger de la viande."),
    ("用户住在奥斯陆.", "用户以前住在奥斯陆."),
    ("用户在博世工作.", "用户不再在博世工作."),
    ("用户吃肉.", "用户不再吃肉."),
    ("用户有一辆自行车.", "用户把自行车卖了."),
    ("用户有一辆自行车.", "用户卖掉了自行车."),
    ("User works as an engineer at Bosch.", "User no longer works at Bosch."),
    ("Jonas arbeitet als Ingenieur bei Bosch.", "Jonas arbeitet nicht mehr bei Bosch."),
    ("Jonas hat ein rotes Fahrrad.", "Jonas hat das Fahrrad verkauft."),
    ("User drives an old Volvo.", "User sold the Volvo."),
    ("User plays the cello in an orchestra.", "User no longer plays the cello."),
    ("User takes Ramipril every morning.", "User stopped taking Ramipril."),
    ("User smokes.", "User quit smoking."),
    ("User goes to the gym.", "User no longer goes to the gym."),
    (
        "User volunteers at the animal shelter on Saturdays.",
        "User stopped volunteering at the animal shelter.",
    ),
    ("User is vegan.", "User is no longer vegan."),
    ("User is a member of the chess club.", "User is no longer a member of the chess club."),
    ("User is married to Per.", "User is no longer married to Per."),
    ("User rents a flat in Graz.", "User no longer rents a flat in Graz."),
    ("Lucía fuma.", "Lucía dejó de fumar."),
    ("Jonas raucht.", "Jonas hat aufgehört zu rauchen."),
    ("用户学钢琴.", "用户不再学钢琴了."),
]
CARELESS = [
    ("User's office is in Oslo.", "User used to live in Oslo."),
    ("User works at Siemens.", "User no longer works at Bosch."),
    ("User's brother works at Bosch.", "User no longer works at Bosch."),
    ("User works at Bosch.", "User's brother no longer works at Bosch."),
    ("User works at Bosch.", "User no longer works at Bosch on Fridays."),
    ("User has a bike shop.", "User sold the bike."),
    ("User owns a bike lock.", "User sold the bike."),
    ("User has a bike.", "User sold the car."),
    ("User eats meat.", "User stopped eating meat on Mondays."),
    ("User plays jazz.", "User no longer likes jazz."),
    ("User lives in Oslo.", "User used to live in Oslo as a child."),
    ("User eats fish.", "User stopped eating meat."),
    ("User is used to rain.", "User used to rain."),
    ("User has a dog.", "User no longer wants a dog."),
    ("User works at Bosch.", "User no longer works at Bosch with Tom."),
    ("User lives in Oslo.", "User is used to living in Oslo."),
    ("Jonas wohnt in Bern.", "Jonas wohnte früher in Oslo."),
    ("Jonas isst Fisch.", "Jonas isst kein Fleisch mehr."),
    ("Jonas hat ein Fahrradschloss.", "Jonas hat das Fahrrad verkauft."),
    ("Anna wohnt in Oslo.", "Jonas wohnte früher in Oslo."),
    ("Lucía vive en Madrid.", "Lucía vivía antes en Oslo."),
    ("Lucía tiene un candado.", "Lucía vendió la bicicleta."),
    ("Lucía come pescado.", "Lucía dejó de comer carne."),
    ("用户住在上海.", "用户以前住在奥斯陆."),
    ("用户吃鱼.", "用户不再吃肉."),
    ("用户有一辆汽车.", "用户把自行车卖了."),
    ("Léa habite à Lyon.", "Léa aime plus Lyon."),
    ("User used to live in Oslo.", "User used to live in Oslo."),
    ("User lives in Oslo.", "User lives in Oslo, no longer in Bergen."),
    ("用户妈妈住在奥斯陆.", "用户以前住在奥斯陆."),
    ("Jonas' Bruder arbeitet bei Bosch.", "Jonas arbeitet nicht mehr bei Bosch."),
    ("User's brother has a red bike.", "User sold the bike."),
    ("El hermano de Lucía trabaja en Bosch.", "Lucía ya no trabaja en Bosch."),
    ("User's sister plays the cello.", "User no longer plays the cello."),
    ("User's gym is on King Street.", "User no longer goes to the gym."),
    ("User owns a bike.", "User left the bike at home."),
    ("User eats meat.", "User did not eat meat yesterday."),
    ("User works at Bosch.", "User stopped at Bosch to pick up a parcel."),
    ("User lives in Oslo.", "User lives in Oslo no matter what."),
    ("User has a bike.", "User has not sold the bike."),
    ("User smokes.", "User has not stopped smoking."),
    ("User smokes.", "User has not given up smoking."),
    ("Nutzer raucht.", "Nutzer hat nicht aufgehört zu rauchen."),
    ("Nutzer verdient 3000 Euro.", "Nutzer verdient nicht mehr als 3000 Euro."),
    (
        "Nutzer trinkt zwei Tassen Kaffee am Tag.",
        "Nutzer trinkt nicht mehr als zwei Tassen Kaffee.",
    ),
    ("Nutzer geht ins Bett.", "Nutzer geht früher ins Bett."),
    ("Usuario se levanta.", "Usuario se levanta antes."),
    ("User eats meat.", "User used to not eat meat."),
    ("User has a car.", "User sold a car in 2010."),
    ("User owns a house.", "User sold the house in 2005."),
    ("User smokes.", "User stopped smoking in 2005."),
    ("User works at Bosch.", "User used to work at Bosch in 2005."),
    ("User has a new car.", "User sold the car."),
    ("User has a painting of the house.", "User sold the house."),
    ("User lives in Oslo with Anna.", "Anna no longer lives in Oslo."),
    ("User likes Anna's cooking.", "User no longer likes Anna."),
    ("User lives in Bern.", "User no longer rents."),
    ("User has a bike.", "User hasn't sold the bike."),
    ("Nutzer möchte ins Bett.", "Nutzer möchte früher ins Bett."),
    ("Léa mange de la viande.", "Léa mange plus de viande."),
    ("User eats meat.", "User no longer wants to stop eating meat."),
    ("Nutzer isst gern.", "Nutzer isst mehr."),
    ("User plays chess.", "User no longer does not play chess."),
]
NAMED = [
    ("they love hiking", "User loves hiking."),
    ("they live in Oslo", "User lives in Oslo."),
    ("their phone number", "User's phone number is 555-0134."),
    ("their address", "User's address is Main Street 5."),
    ("ich gern in den Alpen wandere", "Nutzer wandert gern in den Alpen."),
    ("my phone number", "User's phone number is 555 0134"),
    ("他喜欢徒步", "用户喜欢徒步。"),
    ("le gusta el senderismo", "Al usuario le gusta el senderismo."),
    ("elle habite à Lyon", "L'utilisateur habite à Lyon."),
]
NOT_NAMED = [
    ("their brother likes hiking", "User likes hiking."),
    ("their mother lives in Bern", "User lives in Bern."),
    ("they no longer work at Bosch", "User works at Bosch."),
    ("they work too much", "User works at Bosch."),
    ("they can not swim", "User can swim."),
    ("they love hiking", "User does not love hiking."),
    ("they live alone", "User lives in Bern."),
    ("their wife is angry", "User's wife is Anna."),
    ("their dog is ill", "User has a dog."),
    ("their dog is ill", "User's dog is Rex."),
    ("they sold the car to Tom", "User has a car."),
    ("Max reports to Eva", "Eva reports to Max."),
    ("the birthday gift for Mia", "User's birthday is May 3."),
    ("their old address", "User's address is Main Street 5."),
    ("they like hiking", "Anna likes hiking."),
    ("Anna likes hiking", "User likes hiking."),
]


@pytest.mark.parametrize(("memory", "fact"), ENDED)
def test_an_end_is_that_of_its_memory(memory: str, fact: str) -> None:
    assert ends(fact, memory)


@pytest.mark.parametrize(("memory", "fact"), CARELESS)
def test_an_end_leaves_other_memories(memory: str, fact: str) -> None:
    assert not ends(fact, memory)


@pytest.mark.parametrize(("matter", "memory"), NAMED)
def test_a_request_names_what_a_memory_states(matter: str, memory: str) -> None:
    assert is_named(matter, memory)


@pytest.mark.parametrize(("matter", "memory"), NOT_NAMED)
def test_a_request_names_no_other_memory(matter: str, memory: str) -> None:
    assert not is_named(matter, memory)


@pytest.mark.parametrize(
    ("request_text", "memory"),
    [
        ("User asks to forget that they are allergic to pears.", "User is allergic to peaches."),
        ("User asks to forget that their locker code is 4412.", "User's locker code is 4411."),
        ("L'utilisateur demande d'oublier qu'il aime le poison.", "L'utilisateur aime le poisson."),
        ("User asks to forget that they are vegan.", "User is vegetarian."),
        ("Anna asks to forget that she lives in Oslo.", "User lives with Anna in Oslo."),
        ("Tom asks to forget that he loves hiking.", "User loves hiking."),
        ("用户要求忘记小王爱用户。", "用户爱小王。"),
        (
            "User asks to forget that their sister is Anna's mother.",
            "User's mother is Anna's sister.",
        ),
    ],
)
def test_a_request_about_something_else_names_no_memory(request_text: str, memory: str) -> None:
    assert not is_requested(request_text, memory)


def test_a_request_may_have_another_form_of_the_verb() -> None:
    assert is_requested(
        "Nutzer bittet, zu vergessen, dass er in Bern wohne.", "Nutzer wohnt in Bern."
    )

"""Ends of states, habits and possessions, and the memories that they do not end."""

from __future__ import annotations

import pytest

from pipeline.text.endings import ends

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
]


@pytest.mark.parametrize(("memory", "fact"), ENDED)
def test_an_end_is_that_of_its_memory(memory: str, fact: str) -> None:
    assert ends(fact, memory)


@pytest.mark.parametrize(("memory", "fact"), CARELESS)
def test_an_end_leaves_other_memories(memory: str, fact: str) -> None:
    assert not ends(fact, memory)

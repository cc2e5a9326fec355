"""Requests to forget, in five languages, and statements that only have their words."""

from __future__ import annotations

import pytest

from pipeline.text.forget_requests import asks_to_forget, only_asks_to_forget

REQUESTS = [
    "Please forget that I love hiking.",
    "User asks to forget: loves hiking",
    "User asks to forget that they love hiking.",
    "User asked the assistant to forget their home address",
    "User wants the assistant to forget that they love hiking.",
    "User requests that their phone number be forgotten.",
    "User would like their love of hiking to be forgotten.",
    "User requested to stop remembering the name of their ex.",
    "User does not want the assistant to remember where they work.",
    "User no longer wants their salary to be remembered.",
    "User asks to delete the memory that they love hiking.",
    "User asks you to remove their birthday from memory.",
    "User requested the deletion of their address from the assistant's memory.",
    "Instruction: forget that I live in Oslo",
    "Could you please forget my phone number?",
    "Maya asks Memlane to forget that she lives in Oslo.",
    "Bitte vergiss, dass ich gern wandere.",
    "Nutzer bittet darum, seine Adresse zu vergessen.",
    "User bittet den Assistenten, zu vergessen, dass er wandert.",
    "Nutzerin möchte, dass der Assistent ihre Telefonnummer vergisst.",
    "Jonas bittet, die Erinnerung an seine Adresse zu löschen.",
    "Olvida que me gusta el senderismo.",
    "El usuario pide olvidar que vive en Bilbao.",
    "Lucía quiere que el asistente olvide su dirección.",
    "El usuario pide borrar su teléfono de la memoria.",
    "Oublie que j'aime la randonnée.",
    "L'utilisateur demande d'oublier qu'il habite à Lyon.",
    "Léa souhaite que l'assistant oublie son adresse.",
    "请忘记我喜欢徒步。",
    "用户要求忘记他喜欢徒步。",
    "用户希望助手忘掉她的地址。",
    "用户要求从记忆中删除他的电话号码。",
]
OTHERS = [
    "User asks not to forget the milk.",
    "User wants to forget their ex.",
    "User forgot their keys at the office.",
    "User asked Maria to forget the argument.",
    "User asks to delete the draft of the letter.",
    "User wants to remove the wallpaper in the kitchen.",
    "User asked the assistant to remove the unused import.",
    "User's favourite flower is the forget-me-not.",
    "User never forgets a face.",
    "User wants to clear the memory of the graphics card.",
    "User asks to remember that they love hiking.",
    "Bitte vergiss nicht, dass ich gern wandere.",
    "Jonas möchte seine Ex vergessen.",
    "Jonas bittet Maria, den Streit zu vergessen.",
    "Jonas hat seinen Schlüssel vergessen.",
    "No olvides que vivo en Bilbao.",
    "Lucía quiere olvidar a su ex.",
    "El usuario pide no olvidar la leche.",
    "Léa a oublié ses clés.",
    "N'oublie pas que j'habite à Lyon.",
    "用户忘记带钥匙了。",
    "请不要忘记我喜欢徒步。",
    "用户想忘记前任。",
]


@pytest.mark.parametrize("text", REQUESTS)
def test_a_request_to_forget_is_recognized(text: str) -> None:
    assert asks_to_forget(text)
    assert only_asks_to_forget(text)


@pytest.mark.parametrize("text", OTHERS)
def test_a_statement_about_forgetting_is_no_request(text: str) -> None:
    assert not asks_to_forget(text)


@pytest.mark.parametrize(
    "text",
    [
        "User asks to forget that they live in Oslo, and now lives in Bergen.",
        "User wants the assistant to forget Oslo because they moved to Bergen.",
        "Jonas bittet, Oslo zu vergessen, weil er jetzt in Bergen wohnt.",
        "用户要求忘记奥斯陆，现在住在卑尔根。",
    ],
)
def test_a_request_with_news_is_not_only_a_request(text: str) -> None:
    assert asks_to_forget(text)
    assert not only_asks_to_forget(text)

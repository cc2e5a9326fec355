"""Requests to forget, in five languages, and statements that only have their words."""

from __future__ import annotations

import pytest

from pipeline.text.statements.forget_requests import asks_to_forget, forgotten_matter

REQUESTS = {
    "Please forget that I love hiking.": "I love hiking",
    "User asks to forget: loves hiking": "loves hiking",
    "User asks to forget that they love hiking.": "they love hiking",
    "User asked the assistant to forget their home address": "their home address",
    "User wants the assistant to forget that they love hiking.": "they love hiking",
    "User requested to stop remembering the name of their ex.": "the name of their ex",
    "User asks to delete the memory that they love hiking.": "they love hiking",
    "User asks you to remove their birthday from memory.": "their birthday",
    "User asks to forget that they live in Portland, Oregon.": "they live in Portland, Oregon",
    "Could you please forget my phone number?": "my phone number",
    "Maya asks Memlane to forget that she lives in Oslo.": "she lives in Oslo",
    "Bitte vergiss, dass ich gern wandere.": "ich gern wandere",
    "Bitte vergiss, dass ich kein Fleisch esse.": "ich kein Fleisch esse",
    "Nutzer bittet darum, seine Adresse zu vergessen.": "seine Adresse",
    "User bittet den Assistenten, zu vergessen, dass er wandert.": "er wandert",
    "Nutzerin möchte, dass der Assistent ihre Telefonnummer vergisst.": "ihre Telefonnummer",
    "Olvida que me gusta el senderismo.": "me gusta el senderismo",
    "El usuario pide olvidar que vive en Bilbao.": "vive en Bilbao",
    "Lucía quiere que el asistente olvide su dirección.": "su dirección",
    "Oublie que j'aime la randonnée.": "j'aime la randonnée",
    "L'utilisateur demande d'oublier qu'il habite à Lyon.": "il habite à Lyon",
    "Léa souhaite que l'assistant oublie son adresse.": "son adresse",
    "请忘记我喜欢徒步。": "我喜欢徒步",
    "用户要求忘记他喜欢徒步。": "他喜欢徒步",
    "用户希望助手忘掉她的地址。": "她的地址",
}
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
    "User wants their peanut allergy not to be forgotten.",
    "User asks that their peanut allergy never be forgotten.",
    "User asks to make sure the peanut allergy is not forgotten.",
    "Vergiss nie, dass Nutzer eine Erdnussallergie hat.",
    "Bitte vergiss auf keinen Fall, dass der Nutzer allergisch ist",
    "Nutzer bittet darum, die Erdnussallergie nie zu vergessen.",
    "Nutzer bittet darum, die Erdnussallergie nicht zu vergessen.",
    "Nutzer bittet darum, dass der Assistent die Erdnussallergie niemals vergisst.",
    "请把花生过敏记住,别忘了。",
    "User asks to forget nothing.",
    "User wants you to forget nothing about their allergy.",
    "Forget not the insulin.",
    "User asks the assistant to delete the draft and to remember that they are allergic to nuts.",
    "User needs to remove stitches, and wants you to remember that they are allergic to latex.",
    "User needs to remove a mole and wants you to remember the appointment on 3 May.",
    "User wants to drop the gym membership and asks to remember their new address Main Street 5.",
    "User asked to delete old photos from the memory card.",
    "User wants to clear the cache from memory in Rust.",
    "User wants to remove the detail that shows the price.",
    "Nutzer möchte die Erinnerung im Kalender für den 3. Mai löschen.",
    "用户请求把手机里的记忆卡清除",
    "User's doctor told them to forget about running after knee surgery.",
    "User was told to forget about skiing this season.",
    "User's therapist told them to forget the past and focus on work.",
    "User's ex begged them to forget everything",
    "User wants us to forget the feud.",
    "User told them to forget the dog.",
    "User does not want to be remembered as a failure.",
    "User does not want the agent to know his maximum price.",
    "User wants to remove memories of his wife from the house.",
    "User does not want the model to remember customers' data in his RAG app.",
    "用户要求助手不要再记账。",
    "User asks to forget that they live in Bern and remember that they live in Basel.",
    "User asks to forget that they live in Bern, they live in Basel.",
    "User asks to forget that they live in Bern. They live in Basel.",
    "User asks to forget their old address, the new one is Main Street 5.",
    "User asks that you forget the old address and use Main Street 5 from May on.",
    "Forget Paris is User's favourite movie.",
    "User's favourite song: Forget You",
    "Password hint: forget",
    "Olvida siempre las llaves.",
    "Oublie souvent ses clés.",
    "忘记密码的时候用户会打电话。",
    "User asks to forget everything except that they live in Bern.",
    "User wants to forget that they were fired.",
    "User asked Maria to forget the argument.",
    "Tom told Anna to forget the car.",
    "User requests forgetting about nothing.",
    "用户要求不要忘记他对花生过敏。",
    "User asked to remember not to forget the keys.",
    "User asks to delete the photo from your memory, it is old",
    "User asked to forget the meeting when Tom is ill.",
]
NOT_ONLY = [
    "User asks to forget that they live in Oslo, and now lives in Bergen.",
    "User wants the assistant to forget Oslo because they moved to Bergen.",
    "Jonas bittet, Oslo zu vergessen, weil er jetzt in Bergen wohnt.",
    "用户要求忘记奥斯陆，现在住在卑尔根。",
]


@pytest.mark.parametrize(("text", "matter"), REQUESTS.items())
def test_a_request_to_forget_has_a_matter(text: str, matter: str) -> None:
    assert forgotten_matter(text) == matter


@pytest.mark.parametrize("text", OTHERS)
def test_a_statement_about_forgetting_is_no_request(text: str) -> None:
    assert not asks_to_forget(text)


@pytest.mark.parametrize("text", NOT_ONLY)
def test_a_request_with_news_is_a_statement(text: str) -> None:
    assert not asks_to_forget(text)

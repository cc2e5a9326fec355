"""Relatives of the user as the subject of a statement: "User's sister", "la hermana de la usuaria".

    User's sister sold the house.            sister
    La hermana de la usuaria vendió su casa. hermana
    User has a sister.                       None: the subject is the user

English, German, Spanish, French and Chinese. Words of other languages match nothing.
"""

from __future__ import annotations

import re

from pipeline.text.terms import fold

_PEOPLE = (
    r"(?P<{name}>(?:(?:step|grand|great|half)-?)?(?:mother|father|mum|mom|dad|sister|brother|son"
    r"|daughter|child|parents?|children|wife|husband|spouse|partner|girlfriend|boyfriend|fiancée?"
    r"|aunt|uncle|cousin|niece|nephew|friend|colleague|boss|manager|neighbou?r|landlord|roommate"
    r"|flatmate)(?:-in-law)?"
    r"|(?:stief|groß|schwieger|ur)?(?:mutter|vater|schwester|bruder|sohn|tochter|kind|kinder|eltern"
    r"|frau|mann|partnerin|freund|freundin|tante|onkel|cousine|nichte|neffe|oma|opa|kollege"
    r"|kollegin|chef|chefin|nachbar|nachbarin|vermieter|vermieterin|mitbewohner|mitbewohnerin)"
    r"|madre|padre|hermano|hermana|hijo|hija|hijos|padres|esposo|esposa|marido|mujer|pareja"
    r"|novio|novia|tío|tía|primo|prima|sobrino|sobrina|abuelo|abuela|amigo|amiga|jefe|jefa"
    r"|vecino|vecina|suegro|suegra|compañero|compañera"
    r"|mère|père|sœur|soeur|frère|fils|fille|parents|femme|mari|copain|copine|compagnon|compagne"
    r"|tante|oncle|cousine|nièce|neveu|amie?|collègue|patronne?|voisine?|belle-mère|beau-père)"
)
_USER = r"(?:benutzer|nutzer)(?:in)?"
_SUBJECT = re.compile(
    "|".join(
        (
            rf"^(?:the )?user['’]s (?:\w+ )?{_PEOPLE.format(name='en')}\b",
            rf"^{_USER}s?['’]? {_PEOPLE.format(name='de')}\b",
            rf"^(?:der|die|das) {_PEOPLE.format(name='des')} (?:der|des) {_USER}s?\b",
            rf"^(?:el|la|los|las) {_PEOPLE.format(name='es')} (?:del|de la|de) usuari[oa]\b",
            rf"^(?:le|la|les|l['’]) ?{_PEOPLE.format(name='fr')} de l['’]utilisat(?:eur|rice)\b",
            r"^用户的?(?P<zh>妈妈|爸爸|母亲|父亲|姐姐|妹妹|哥哥|弟弟|儿子|女儿|孩子|妻子|丈夫|老婆|老公"
            r"|男友|女友|男朋友|女朋友|奶奶|爷爷|外公|外婆|朋友|同事|老板|邻居|房东|室友)",
        )
    ),
    re.IGNORECASE,
)
# Characters that are read: a subject opens the statement.
MOST_CHARS = 100


def relative(text: str) -> str | None:
    """The word for the relative of the user who is the subject of a statement, in lower case."""
    match = _SUBJECT.match(text[:MOST_CHARS])
    return next((word.lower() for word in match.groups() if word), None) if match else None


def has_word(text: str, word: str) -> bool:
    """Tell if a text has a word; in Chinese, if it has its characters."""
    text, word = fold(text), fold(word)
    return word in text and (
        not word.isascii() or re.search(rf"\b{re.escape(word)}\b", text) is not None
    )

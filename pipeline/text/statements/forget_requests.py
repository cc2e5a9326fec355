"""Requests to forget: statements that only ask the assistant to delete what it remembers.

    User asks to forget that they love hiking.        they love hiking
    User wants the assistant to forget their address. their address
    Bitte vergiss, dass ich in Bern wohne.            ich in Bern wohne
    User asks not to forget the milk.                 no request: the opposite
    User's doctor advised them to forget about running.  no request: another listener
    User asks to forget Bern, they live in Basel.     no request: it has news, too

A request is about a memory and is none itself, so a statement that is taken for one is lost. The
forms are therefore few: in doubt a statement is no request. English, German, Spanish, French and
Chinese. Words of other languages match nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Characters of the longest request.
MOST_CHARS = 200

_USER = r"(?:(?:the )?user|they|he|she|i|(?-i:[A-ZÀ-Þ])[\w-]*)"
_ASSISTANT = r"(?:the (?:assistant|system|ai|bot|chatbot)|assistant|memlane|you)"
_ASKS = r"(?:asks|ask|asked|requests|request|requested)"
_WANTS = r"(?:wants|want|wanted|would like|instructs|instructed|tells|told)"
_FORGET = r"(?:please )?(?:forget|stop remembering|no longer remember)(?: about)?:?"
_MEMORY = r"(?:(?:its|your|the assistant['’]s|memlane['’]s) )?(?:long-term )?memory"
_POLITE = r"(?:please |kindly )?(?:(?:can|could|would|will) you (?:please )?)?"

_NUTZER = r"(?:(?:der |die )?(?:nutzer|nutzerin|user|benutzer|benutzerin)|(?-i:[A-ZÄÖÜ])[\w-]*)"
_ASSISTENT = r"(?:der assistent|das system|memlane|du|sie)"
_DARUM = r"(?: den assistenten| das system| memlane)?(?: darum)?"
_BITTET = rf"(?:bittet|bat){_DARUM}"
_MOECHTE = rf"(?:bittet|bat|möchte|will|wünscht){_DARUM}"

_USUARIO = r"(?:(?:el |la )?(?:usuario|usuaria|user)|(?-i:[A-ZÁÉÍÓÚÑ])[\w-]*)"
_ASISTENTE = r"(?:el asistente|el sistema|memlane)"
_PIDE = r"(?:pide|pidió|solicita|solicitó)(?: al asistente| al sistema| a memlane)?"

_UTILISATEUR = r"(?:l['’]utilisat(?:eur|rice)|user|(?-i:[A-ZÀ-Þ])[\w-]*)"
_LASSISTANT = r"(?:l['’]assistant|le système|memlane)"
_A_LASSISTANT = r"(?: à l['’]assistant| au système| à memlane)?"

_END = r"[.!?。！]?$"
# A group for each form: {n} is its number.
_MATTER = rf"(?P<matter{{n}}>.+?){_END}"
_FORMS = (
    # English
    rf"^{_USER} (?:{_ASKS}|{_WANTS}) {_ASSISTANT} to {_FORGET} {_MATTER}",
    rf"^{_USER} {_ASKS} (?:to )?{_FORGET} {_MATTER}",
    rf"^{_USER} (?:{_ASKS}|{_WANTS}) that {_ASSISTANT} (?:should )?forgets? {_MATTER}",
    rf"^{_POLITE}(?:forget|stop remembering)(?: about)? "
    rf"(?P<matter{{n}}>(?:that|my|our|what|everything)\b.+?){_END}",
    rf"^{_USER} (?:{_ASKS}|{_WANTS}) (?:{_ASSISTANT} )?to (?:delete|erase|remove) "
    rf"(?P<matter{{n}}>.+?) from {_MEMORY}{_END}",
    rf"^{_USER} {_ASKS} (?:{_ASSISTANT} )?to delete the memory "
    rf"(?P<matter{{n}}>(?:that|of|about)\b.+?){_END}",
    rf"^{_POLITE}(?:delete|erase|remove) (?P<matter{{n}}>.+?) from your "
    rf"(?:long-term )?memory{_END}",
    # German
    r"^(?:bitte )?(?:vergiss|vergesst|vergessen sie)(?: bitte)?,? "
    rf"(?P<matter{{n}}>(?:dass|meine?[nrms]?|unsere?[nrms]?|alles über)\b.+?){_END}",
    rf"^{_NUTZER} {_BITTET}, (?P<matter{{n}}>.+?) zu vergessen{_END}",
    rf"^{_NUTZER} {_BITTET}, zu vergessen, {_MATTER}",
    rf"^{_NUTZER} {_MOECHTE}, dass {_ASSISTENT} (?P<matter{{n}}>.+?) vergisst{_END}",
    rf"^{_NUTZER} {_MOECHTE}, dass {_ASSISTENT} vergisst, {_MATTER}",
    # Spanish
    r"^(?:por favor,? )?(?:olvida|olvide)(?: por favor)? "
    rf"(?P<matter{{n}}>(?:que|mis?|nuestr[oa]s?|todo lo)\b.+?){_END}",
    rf"^{_USUARIO} {_PIDE} (?:olvidar|que olvides?) {_MATTER}",
    rf"^{_USUARIO} (?:pide|pidió|quiere|desea) que {_ASISTENTE} olvide {_MATTER}",
    # French
    r"^(?:s['’]il (?:te|vous) pla[iî]t,? )?(?:oublie|oubliez) "
    rf"(?P<matter{{n}}>(?:qu['’]|(?:que|mon|ma|mes|notre|tout ce)\b).+?){_END}",
    rf"^{_UTILISATEUR} (?:demande|a demandé){_A_LASSISTANT} d['’]oublier {_MATTER}",
    rf"^{_UTILISATEUR} (?:demande|souhaite|veut|voudrait) que {_LASSISTANT} oublie {_MATTER}",
    # Chinese
    r"^(?:请|麻烦)?你?(?:忘记|忘掉|忘了)(?P<matter{n}>(?:我|用户).+?)[。！]?$",
    r"^(?:用户)?(?:要求|请求|希望)(?:助手|助理|系统|你)?(?:忘记|忘掉|忘了)(?P<matter{n}>.+?)[。！]?$",
    r"^(?:请)?把(?P<matter{n}>(?:我|用户).+?)(?:忘记|忘掉|忘了)吧?[。！]?$",
)
_REQUEST = re.compile(
    "|".join(f"(?:{form.replace('{n}', str(n))})" for n, form in enumerate(_FORMS)), re.IGNORECASE
)
# Words of the matter that say more than what is to be forgotten: a second statement, an exception,
# a reason, or that nothing is to be forgotten.
_MORE = re.compile(
    r"[;；，:]|[.!?,] (?-i:[^A-ZÄÖÜÀ-Þ\d])|[.!?] "
    r"|^(?:not|never|nothing|nie|niemals|nicht|nichts|nada|rien)\b"
    r"|\b(?:and|but|except|apart from|instead|because|since|until|unless|if|when|remember|save"
    r"|store|und|aber|sondern|außer|statt|stattdessen|weil|wenn|bis|falls"
    r"|nie|niemals|keinesfalls|auf keinen fall|nichts"
    r"|y|pero|sino|excepto|salvo|porque|si|hasta"
    r"|et|mais|sauf|parce que|si|jusqu)\b|但|因为|而是|除了|并且|如果|的时候|\bnicht$",
    re.IGNORECASE,
)
# Words between the request and its matter.
_OPENING = re.compile(
    r"^(?:the fact that|that|about|of|dass|daß|que|qu['’]|alles über|everything about)\s*,?\s*",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def forgotten_matter(text: str) -> str | None:
    """The words of a request for what is to be forgotten; None for any other statement."""
    text = text.strip()
    match = _REQUEST.search(text) if len(text) <= MOST_CHARS else None
    if match is None:
        return None
    matter = next(group for group in match.groups() if group)
    return None if _MORE.search(matter) else _OPENING.sub("", matter)


def asks_to_forget(text: str) -> bool:
    """Tell if a statement is a request to forget something, and says nothing else."""
    return forgotten_matter(text) is not None

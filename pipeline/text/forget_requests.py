"""Requests to forget: statements that ask the assistant to delete what it remembers.

    User asks to forget that they love hiking.        yes
    User wants the assistant to forget their address. yes
    Bitte vergiss, dass ich in Bern wohne.            yes
    User asks not to forget the milk.                 no: the opposite
    User wants to forget their ex.                    no: the user forgets, not the assistant
    User asks to delete the draft.                    no: no memory is named

A request is about a memory and is none itself. English, German, Spanish, French and Chinese. Words
of other languages match nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Characters that are read: a request stands at the start of a statement.
MOST_CHARS = 400

# Words of the model before a quoted request: "Request: forget …".
_LABEL = r"(?:[^:：]{1,40}[:：] ?[\"'“«„「]?)?"
_ASSISTANT = (
    r"(?:the (?:assistant|system|ai|bot|chatbot|model|agent|memory)|assistant|memlane|you|us|them)"
)
_ASKS = (
    r"\b(?:asks?|asked|asking|requests?|requested|requesting|tells?|told|instructs?|instructed"
    r"|begs?|begged|urges?|urged|orders?|ordered)(?: for)?"
)
_WANTS = r"\b(?:wants?|wanted|would like|wishes|wished|needs?|needed|expects?|prefers?)"
_WANTS_NOT = r"\b(?:not|n['’]t|no longer) (?:want|wish|like)s?"
_FORGET = (
    r"(?:please )?(?:to )?(?:please )?"
    r"(?:forget\b|stop remembering\b|not (?:to )?remember\b|no longer remember\b)"
)
_DELETE = r"(?:delet|eras|remov|clear|discard|purg|wip|drop)(?:e|es|ed|ing|ion|al)?\b"
_REMEMBERED = (
    r"(?:(?:from|in) (?:(?:its|your|their|the|the assistant's|the system's) )?(?:long-term )?"
    r"memor(?:y|ies)\b|\bmemor(?:y|ies) (?:that|about|of (?:my|his|her|their))\b"
    r"|\bremember(?:s|ed)?\b|\bthe (?:fact|information|detail) that\b|\b(?:you|it) knows? )"
)
_HAVE_FORGOTTEN = r"(?:to be |be )?(?:forgotten|deleted from memory|erased from memory)\b"
_FORMS = (
    # English
    rf"^{_LABEL}(?:(?:and|so|then|ok|okay|now|also)[, ]+)?(?:please |kindly |just )?"
    rf"(?:(?:can|could|would|will) you (?:please )?)?(?:forget\b(?!-)|stop remembering\b)",
    rf"{_ASKS}(?: {_ASSISTANT})? {_FORGET}|{_ASKS} (?:that |for )?.{{1,80}} {_HAVE_FORGOTTEN}",
    rf"{_ASKS} that {_ASSISTANT} (?:should )?forgets?\b",
    rf"{_WANTS} {_ASSISTANT} {_FORGET}|{_WANTS} .{{1,80}} {_HAVE_FORGOTTEN}",
    rf"{_WANTS_NOT} {_ASSISTANT} to (?:remember|know|store|keep)\b",
    rf"{_WANTS_NOT}\b.{{1,80}}\b(?:remembered\b|kept in memory\b)",
    rf"(?:{_ASKS}|{_WANTS}|^{_LABEL}(?:please )?)(?: ?{_ASSISTANT})? ?(?:to )?(?:please )?"
    rf"(?:the )?{_DELETE}.{{0,120}}{_REMEMBERED}",
    r"\brequest(?:s|ed)? (?:the )?forgetting\b|\brequest to (?:forget|stop remembering)\b",
    # German
    rf"^{_LABEL}(?:bitte )?(?:vergiss|vergesst|vergessen sie)\b(?!.{{0,40}}\bnicht\b)",
    r"\b(?:bittet|bat|verlangt)(?: (?:darum|den assistenten|das system|memlane|dich|sie|euch))?"
    r"(?:,.{0,120}?)? (?<!nicht )zu vergessen\b",
    r"\b(?:bittet|bat|verlangt|möchte|will|wünscht)(?: darum)?, dass (?:der assistent|das system"
    r"|memlane|du|sie|man|wir)\b(?!.{0,80}\bnicht verg).{0,120}"
    r"\b(?:vergisst|vergessen|nicht mehr (?:merk|weiß|erinner)\w*)\b",
    rf"(?:\b(?:bittet|bat|verlangt|möchte|will|wünscht)\b|^{_LABEL}(?:bitte )?lösch).{{0,120}}"
    r"\b(?:aus (?:dem|deinem|seinem|ihrem) gedächtnis|erinnerung(?:en)?)\b.{0,80}"
    r"\b(?:lösch\w*|gelöscht|entfern\w*|streich\w*)\b",
    # Spanish
    rf"^{_LABEL}(?:por favor,? )?(?:olvida|olvide|olvídate|olvídese|olvidad)\b",
    r"\b(?:pide|pidió|solicita|solicitó|ruega)(?: (?:al|a la) (?:asistente|sistema)| a memlane)?"
    r"(?: que (?:el asistente |el sistema |se |lo |la )?)? ?(?:olvidar|olvide[ns]?|deje[ns]? de"
    r" recordar)\b",
    r"\b(?:quiere|desea|quisiera) que (?:el asistente|el sistema|memlane|se|yo|tú) "
    r"(?:se )?(?:olvide[ns]?|deje[ns]? de recordar)\b",
    r"\b(?:pide|pidió|solicita|solicitó|quiere|desea)\b.{0,80}\b(?:borr|elimin)\w+.{0,80}"
    r"\b(?:de (?:la|su|tu) memoria|el recuerdo|los recuerdos)\b",
    # French
    rf"^{_LABEL}(?:(?:s['’]il (?:te|vous) pla[iî]t|merci),? (?:d['’])?)?oubli(?:e|ez|er)\b",
    r"\b(?:demande|a demandé|prie)(?: à l['’]assistant| au système| à memlane| l['’]assistant)?"
    r" (?:d['’]oublier\b|de ne plus (?:se souvenir|retenir)\b|qu['’]on oublie\b"
    r"|que (?:l['’]assistant|le système) oublie\b)",
    r"\b(?:souhaite|veut|voudrait|aimerait) (?:qu['’]on|que (?:l['’]assistant|le système|memlane))"
    r" oublie\b",
    r"\b(?:demande|souhaite|veut)\b.{0,80}\b(?:supprim|effac)\w+.{0,80}\b(?:de (?:la|sa|ta) mémoire"
    r"|le souvenir|les souvenirs)\b",
    # Chinese
    rf"^{_LABEL}(?:请|麻烦)?(?:你)?(?:把.{{1,40}})?(?:忘记|忘掉|忘了(?!带|拿|关|做|买))",
    r"(?:要求|请求)(?:助手|助理|系统|你|AI|我们)?(?:把.{1,40}|将.{1,40})?"
    r"(?:忘记|忘掉|忘了|不要再记|别再记|不再记)",
    r"(?:希望|想让|想要|让|叫|请)(?:助手|助理|系统|你|AI|我们)(?:把.{1,40}|将.{1,40})?"
    r"(?:忘记|忘掉|忘了|不要再记|别再记|不再记)",
    r"(?:要求|请求|希望|^请|^把).{0,40}记忆(?:中|里)?.{0,20}(?:删除|删掉|移除|清除)"
    r"|(?:要求|请求|希望|^请).{0,20}(?:删除|删掉|移除|清除).{0,40}的?记忆",
)
_REQUEST = re.compile("|".join(f"(?:{form})" for form in _FORMS), re.IGNORECASE)
# A word that each request has, for most statements the only search.
_SIGN = re.compile(
    r"forg[eo]t|remember|memor|(?:fact|information|detail) that|knows? |vergiss|vergess"
    r"|gedächtnis|erinner|olvid|recordar|recuerd|oubli|souvenir|retenir|mémoire|忘|记",
    re.IGNORECASE,
)
# A second statement behind the request, which has news: "…, and now lives in Bergen".
_NEWS = re.compile(
    r"[;；]|[,，]? ?\b(?:but|instead|because|and (?:now|instead|says|mentions|states)|since (?:he"
    r"|she|they|the user|user)|aber|sondern|stattdessen|weil|und (?:jetzt|nun|sagt)|pero|sino"
    r"|porque|y (?:ahora|dice)|mais|parce que|et (?:maintenant|dit))\b|但|因为|而是|并且现在|现在",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def _request(text: str) -> re.Match[str] | None:
    text = text[:MOST_CHARS]
    return _REQUEST.search(text) if _SIGN.search(text) else None


def asks_to_forget(text: str) -> bool:
    """Tell if a statement is a request to forget something."""
    return _request(text) is not None


def only_asks_to_forget(text: str) -> bool:
    """Tell if a statement is a request to forget, and says nothing else."""
    match = _request(text)
    return match is not None and not _NEWS.search(text[:MOST_CHARS], match.start())

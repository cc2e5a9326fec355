"""Word lists of the tokenizer: stop words, and irregular English forms."""

from __future__ import annotations

# Words without information about the subject of a sentence. Words with a meaning in another of the
# languages (war, die, hat, mit, sin) are not in the list.
_FUNCTION_WORDS = """
    a an and are as at be been but by can could did do does for from had has have he her his how i
    if in into is it its me my no not of on or our she should so such that the their them then there
    these they this those to us was we were what when where which who whom whose why will with would
    you your

    aber als auch auf aus bei bis das dass dem der des dich dir doch du ein eine einem einen
    einer eines er es euch hab habe haben hatte hatten ich ihm ihn ihnen ihr ihre ihren im ist
    ja kann kein keine mein meine meinem meinen meiner mich mir nach nicht noch nun nur oder
    sein seine seinen seiner sich sie sind um und uns unser unsere vom von wann warum was wem
    wen wenn wer werden wie wir wird wo wohin woher worden wurde würde zu zum zur über

    al cual cuando cuál cuándo cómo como de del desde donde dónde el ella ellas ellos en es esa
    ese eso esta este esto está están estaba fue ha la las le lo los mi mis muy más ni nos o
    para pero por porque que quien quién qué se sobre su sus también te tiene tu tus una unas
    unos y ya yo él
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

# "lives" and "leaves" are missing: they are verbs more often than nouns.
# A question has the base form ("what did she buy?"), a statement often not ("I bought a bike").
_FORMS = """
    arise arose arisen; awake awoke awoken; beat beaten; become became; begin began begun;
    bend bent; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred;
    bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen;
    come came; cost; creep crept; cut; deal dealt; dig dug; draw drew drawn; dream dreamt;
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel
    felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden;
    forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
    give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden;
    hold held; keep kept; kneel knelt; know knew known; lay laid; lead led; leave left; lend
    lent; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang
    rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send
    sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk;
    sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken;
    spend spent; spin spun; stand stood; steal stole stolen; stick stuck; strike struck;
    swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken; teach
    taught; tear tore torn; tell told; think thought; throw threw thrown; understand
    understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; write
    wrote written; child children; man men; woman women; person people; foot feet; tooth
    teeth; mouse mice; wife wives; knife knives; half halves; shelf shelves
"""
IRREGULAR = {
    form: base for base, *forms in (group.split() for group in _FORMS.split(";")) for form in forms
}


def words_of(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())

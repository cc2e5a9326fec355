"""Names of relations: one name for all synonyms, in the direction in which it is stored.

    canonical("is_employed_by")   works_at, as it stands
    canonical("employs")          works_at, with source and destination exchanged

A name that is not listed stays, without auxiliary words: the vocabulary grows. A project can list
names of its own, which stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.terms import terms
from pipeline.text.word_lists import words_of

# Longest name; longer ones are sentences.
MOST_CHARS = 60

# Names with their synonyms. Those behind "<" state the same in the other direction.
_NAMES = """
lives_in: resides_in residing_in living_in based_in lives_at moved_to relocated_to located_at_home
    home_is has_residence residence wohnt_in lebt_in vive_en reside_en 居住在 住在
    < home_of residence_of
works_at: works_for working_at working_for employed_by employed_at has_employer employer
    works_with_company joined_company arbeitet_bei arbeitet_für trabaja_en trabaja_para
    就职于 在职于 < employs employer_of has_employee hired hires
works_as: job_title has_job job occupation has_occupation profession works_as_a has_role
studies_at: student_at enrolled_at studying_at goes_to_school studiert_an estudia_en
    < has_student
named: has_name is_named is_called name full_name heißt se_llama
also_known_as: nickname has_nickname nicknamed goes_by aka alias called spitzname apodo
married_to: spouse_of husband_of wife_of has_spouse has_husband has_wife spouse husband wife
    is_wed_to wed_to marries verheiratet_mit casado_con casada_con 与结婚
engaged_to: fiance_of fiancee_of has_fiance has_fiancee betrothed_to verlobt_mit
dating: in_relationship_with in_a_relationship_with partner_of has_partner boyfriend_of
    girlfriend_of has_boyfriend has_girlfriend partner
divorced_from: ex_husband_of ex_wife_of ex_spouse_of geschieden_von
has_mother: < mother_of
has_father: < father_of
has_parent: child_of has_parents < parent_of has_child has_children
has_sister: sister_is < sister_of
has_brother: brother_is < brother_of
has_sibling: sibling_of
has_son: < son_of
has_daughter: < daughter_of
has_grandmother: < grandmother_of
has_grandfather: < grandfather_of
has_uncle: < uncle_of
has_aunt: < aunt_of
has_cousin: cousin_of
has_friend: friend_of friends_with is_friends_with befriended befreundet_mit amigo_de amiga_de
has_colleague: colleague_of coworker_of co_worker_of works_with has_coworker teammate_of
    has_teammate kollege_von kollegin_von
has_boss: reports_to managed_by supervised_by has_manager < boss_of manager_of
has_neighbour: neighbour_of neighbor_of has_neighbor
has_roommate: roommate_of flatmate_of lives_with has_flatmate shares_flat_with
has_doctor: patient_of < doctor_of
has_teacher: taught_by student_of < teacher_of teaches_person
owns: has_pet owner_of possesses has_dog has_cat bought besitzt posee
    < owned_by pet_of property_of
drives: drives_a
likes: loves enjoys adores fond_of is_fond_of fan_of is_a_fan_of interested_in mag liebt
    < liked_by loved_by
dislikes: hates detests cannot_stand
speaks: speaks_language fluent_in
learns: learning studying
plays: plays_instrument plays_sport
allergic_to: has_allergy_to has_allergy
has_condition: suffers_from diagnosed_with
follows_diet: diet has_diet
born_in: was_born_in birthplace place_of_birth
is_from: comes_from from originates_from hometown
has_birthday: birthday born_on was_born_on date_of_birth
member_of: belongs_to_group is_member_of part_of_team plays_for < has_member
located_in: situated_in is_located_in lies_in liegt_in ubicado_en 位于 < location_of
part_of: belongs_to_organization subsidiary_of division_of < has_part has_subsidiary
founded: founder_of co_founded cofounded established < founded_by
leads: leader_of ceo_of head_of directs < led_by run_by
visited: travelled_to traveled_to went_to has_visited
plans_to_visit: planning_to_visit will_visit
plans_to: planning_to intends_to
"""

# The attribute of a relation, as facts name it; see pipeline/text/statements/slots.
_ATTRIBUTES: Mapping[str, str] = {
    "lives_in": "residence", "works_at": "employer", "works_as": "job_title", "named": "name",
    "married_to": "partner", "engaged_to": "partner", "dating": "partner", "has_birthday":
    "birthday", "born_in": "birthplace", "is_from": "origin", "follows_diet": "diet", "is_aged":
    "age", "has_status": "marital_status", "drives": "car", "owns": "pets", "likes": "likes",
    "dislikes": "dislikes", "speaks": "languages", "allergic_to": "allergies", "studies_at":
    "school", "visited": "visited",
}  # fmt: skip
# Relations of which a source has one destination at a time.
_SINGLE = words_of(
    """
    lives_in works_at works_as named married_to engaged_to has_birthday born_in is_aged
    has_status follows_diet has_mother has_father
    """
)
# Relations of which a source usually has several: a new one is no reason to end another.
_SEVERAL = words_of(
    """
    likes dislikes owns speaks learns plays allergic_to has_condition visited plans_to_visit
    plans_to member_of founded also_known_as divorced_from has_friend has_colleague has_neighbour
    has_roommate has_parent has_sibling has_sister has_brother has_son has_daughter has_uncle
    has_aunt has_cousin has_grandmother has_grandfather
    """
)
# Relations that hold in both directions.
_SYMMETRIC = words_of(
    """
    married_to engaged_to dating divorced_from has_sibling has_cousin has_friend has_colleague
    has_neighbour has_roommate
    """
)
# Relations that a new one ends, for any destination.
_PARTNERS = frozenset({"married_to", "engaged_to", "dating", "has_status"})
_ENDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_PARTNERS, _PARTNERS),
    "divorced_from": frozenset({"married_to", "has_status"}),
}
# Relations that a new one between the same two things ends.
_OPPOSITES: Mapping[str, frozenset[str]] = {
    "likes": frozenset({"dislikes"}),
    "dislikes": frozenset({"likes"}),
    "divorced_from": frozenset({"married_to", "engaged_to", "dating"}),
    "visited": frozenset({"plans_to_visit"}),
}
# Relations that name their source.
NAMING = frozenset({"named", "also_known_as"})

_AUXILIARY = re.compile(
    r"^(?:(?:is|are|has_been|currently|now|still|presently|also|recently)_)+(?=.{3})"
)
_FAVOURITE = re.compile(r"^(?:(?:has_)?favou?rite|preferred)_")


class Canonical(NamedTuple):
    """A relation's name. `exchanged`: source and destination change places."""

    name: str
    exchanged: bool = False


def _read(table: str) -> dict[str, Canonical]:
    names: dict[str, Canonical] = {}
    for entry in re.split(r"\n(?=\S)", table.strip()):
        name, _, words = entry.partition(":")
        same, _, other = words.partition("<")
        names[name] = Canonical(name)
        names |= dict.fromkeys(same.split(), Canonical(name))
        names |= dict.fromkeys(other.split(), Canonical(name, exchanged=True))
    return names


_CANONICAL = _read(_NAMES)
BUILT_IN = tuple(dict.fromkeys(canonical.name for canonical in _CANONICAL.values()))
# The names that a model is shown; it knows the pattern of the other has_… names from these.
OFFERED = tuple(
    name for name in BUILT_IN if not name.startswith("has_") or name in (
        "has_mother", "has_brother", "has_friend", "has_colleague", "has_boss", "has_condition",
    )
)  # fmt: skip


def snake(text: str) -> str:
    """The text in snake_case; "" if it has no letter or digit."""
    return re.sub(r"\W+", "_", text.casefold()).strip("_")


def canonical(name: str, own: Iterable[str] = ()) -> Canonical:
    """The stored name of a relation. `own`: names of the project, which stay as they are."""
    word = snake(name)
    if word in own:
        return Canonical(word)
    if known := _CANONICAL.get(word):
        return known
    bare = _AUXILIARY.sub("", word)
    if known := _CANONICAL.get(bare):
        return known
    return Canonical(_FAVOURITE.sub("favourite_", bare)[:MOST_CHARS] or "related_to")


# Words of questions and facts about a relation, besides its synonyms.
_MATTER = {
    "works_at": "job company employer work firm arbeit arbeitgeber firma stelle trabajo empleo "
    "empresa 工作 公司",
    "works_as": "job profession work beruf arbeit trabajo 工作 职业",
    "lives_in": "home live city town place where moved wohnt stadt vive ciudad 住 城市 哪里",
    "located_in": "city town place where country stadt land wo ciudad dónde 城市 哪里",
    "born_in": "born city town place where geboren nació 出生",
    "married_to": "marry married divorce marriage wife husband geschieden ehe divorcio 离婚",
    "engaged_to": "engaged engagement wedding verlobung boda 婚礼",
    "dating": "broke split girlfriend boyfriend partner getrennt 分手",
    "owns": "pet own have possess haustier mascota 宠物",
    "has_boss": "boss manager chef jefe 老板",
    "has_colleague": "colleague coworker kollege colega 同事",
    "named": "name heißt llama 名字",
}


_PLACE_WORDS = frozenset(
    ["in", "at", "from", "near", "location", "place", "city", "wohnt", "sitz", "en"]
)


@lru_cache(maxsize=1_000)
def words_about(relation: str) -> frozenset[str]:
    """The terms of a relation: of its name, of its synonyms, and of its matter."""
    synonyms = [word for word, known in _CANONICAL.items() if known.name == relation]
    text = " ".join((relation, *synonyms)).replace("_", " ")
    roles = " ".join(word for word, role in _ROLE_WORDS.items() if role == role_in(relation))
    return frozenset(terms(f"{text} {_MATTER.get(relation, '')} {roles}"))


def leads_to_place(relation: str) -> bool:
    """True if "where" may ask for the relation: lives_in, works_at, is_from."""
    return relation.rsplit("_", 1)[-1] in _PLACE_WORDS


def attribute_of(relation: str) -> str | None:
    """The attribute that the relation gives a value of; None if none is known."""
    return _ATTRIBUTES.get(relation)


def is_single(relation: str) -> bool:
    """True if a source has one destination at a time, so that a new one ends the former."""
    return relation in _SINGLE or relation.startswith("favourite_")


def has_several(relation: str) -> bool:
    """True if a source usually has several destinations, so that a new one is one more."""
    return relation in _SEVERAL


def is_symmetric(relation: str) -> bool:
    """True if the relation holds in both directions."""
    return relation in _SYMMETRIC


def ended_by(relation: str) -> frozenset[str]:
    """Relations of the same source that a new `relation` ends."""
    return _ENDS.get(relation) or (frozenset({relation}) if is_single(relation) else frozenset())


def opposites(relation: str) -> frozenset[str]:
    """Relations between the same two things that cannot hold together with `relation`."""
    return _OPPOSITES.get(relation, frozenset())


def ends_both(relation: str) -> bool:
    """True if the destination, too, has one such relation at a time: a marriage."""
    return relation in _PARTNERS and relation != "has_status"


# ── roles: the words that tell two persons of the same name apart ─────────────────────────────────

_KIN = words_of(
    """
    mother father parent sister brother sibling son daughter child grandmother grandfather
    uncle aunt cousin nephew niece grandson granddaughter
    """
)
_PARTNER_ROLES = words_of("wife husband spouse partner boyfriend girlfriend fiance fiancee")
_SOCIAL = words_of(
    """
    friend best_friend colleague coworker teammate boss manager neighbour neighbor roommate
    flatmate doctor teacher dentist therapist coach trainer landlord
    """
)


def role_in(relation: str) -> str | None:
    """The role that a relation gives a person: `brother` for has_brother; None for no role."""
    if relation in ("married_to", "engaged_to", "dating"):
        return "partner"
    role = relation.removeprefix("has_").rsplit("older_")[-1].rsplit("younger_")[-1]
    return role if relation.startswith("has_") and role in _KIN | _PARTNER_ROLES | _SOCIAL else None


def one_person(first: str, other: str) -> bool:
    """True if one person can have both roles, as a friend and colleague; no brother is an uncle."""
    if first == other or not _KIN & {first, other}:
        return True
    return {first, other} <= {"sibling", "sister"} or {first, other} <= {"sibling", "brother"}


_ROLE_WORDS = {
    word: role
    for role, words in {
        "mother": "mum mom mutter madre mamá 妈妈 母亲",
        "father": "dad vater padre papá 爸爸 父亲",
        "sister": "schwester hermana 姐姐 妹妹",
        "brother": "bruder hermano 哥哥 弟弟",
        "son": "sohn hijo 儿子",
        "daughter": "tochter hija 女儿",
        "uncle": "onkel tío 叔叔 舅舅",
        "aunt": "tante tía 阿姨 姑姑",
        "cousin": "cousine prima primo 表哥 表弟 表姐 表妹 堂哥 堂弟",
        "grandmother": "oma großmutter abuela 奶奶 外婆",
        "grandfather": "opa großvater abuelo 爷爷 外公",
        "nephew": "neffe sobrino 侄子",
        "niece": "nichte sobrina 侄女",
        "wife": "ehefrau frau esposa mujer 妻子 老婆",
        "husband": "ehemann mann esposo marido 丈夫 老公",
        "girlfriend": "novia 女朋友",
        "boyfriend": "novio 男朋友",
        "friend": "freund freundin amigo amiga 朋友",
        "colleague": "coworker kollege kollegin colega compañero compañera 同事",
        "boss": "chef chefin jefe jefa 老板 上司",
        "neighbour": "neighbor nachbar nachbarn nachbarin vecino vecina 邻居",
        "doctor": "arzt ärztin médico médica 医生",
        "teacher": "lehrer lehrerin profesor profesora maestro maestra 老师",
    }.items()
    for word in (role, *words.split())
}
# Longest name whose role is read, in characters: a longer one is no name of a person.
LONGEST_PERSON = 100
_ROLES = "|".join(sorted(map(re.escape, _ROLE_WORDS), key=len, reverse=True))
_CALLED = r",? (?:is )?(?:named|called|namens|llamad[oa]) "
_OWNERS = (
    "my|his|her|their|the|user's|a|an|mein|meine|ihr|ihre|sein|seine|der|die|ein|eine|mi|su|el|la"
    "|un|una"
)


def role_of(text: str, name: str) -> str | None:
    """The role that stands in front of a name, or behind it, in a text; None without one.

    "User's colleague Sam", "Sam, their brother", "mein Bruder Sam", "我的同事小明".
    """
    if len(name) > LONGEST_PERSON:
        return None
    here = re.escape(name)
    before = rf"(?:\b|(?<=的))(?P<a>{_ROLES})(?:{_CALLED}|, | |叫|是)?"
    behind = rf",? (?:(?:is|ist|es|war) )?(?:(?:{_OWNERS}) )+(?P<b>{_ROLES})\b"
    match = re.search(rf"(?:{before}{here}|\b{here}{behind})", text, re.IGNORECASE)
    if match is None:
        return None
    return _ROLE_WORDS[(match["a"] or match["b"]).lower()]

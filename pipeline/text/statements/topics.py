"""Topics of attributes: `employer` and `manager` are both about work.

A change of one attribute often changes others of its topic: who changes jobs has another manager.
The table has the attributes that models name most; an attribute that it lacks has the topics of its
words, so `garden_plan` is about the garden.
"""

from __future__ import annotations

from functools import lru_cache

_TABLE = {
    "home": """residence home rent flatmate roommate landlord address house house_plan apartment
        furniture moving neighbour key parking""",
    "work": """employer job job_title manager boss supervisor salary pay income work_hours shift
        home_office remote_work commute colleague intern project deadline meeting career_goal
        career_plan side_job side_project side_business business award union promotion""",
    "study": """education school university course class exam degree certificate academy study
        language languages language_course student_loan training""",
    "love": """partner spouse marital_status relationship wedding engagement fiance honeymoon
        children family_planning divorce dating""",
    "food": """diet food favourite_food allergy allergies intolerance breakfast lunch cooking
        restaurant favourite_restaurant coffee tea drink morning_drink alcohol""",
    "health": """health doctor dentist orthodontics medication injury illness therapy physiotherapy
        physio sleep smoking allergy allergies weight weight_goal glasses surgery symptom
        blood_type""",
    "sport": """sport exercise running race gym fitness yoga swimming climbing trainer hiking injury
        cycling team""",
    "music": "music instrument band choir concert rehearsal lesson",
    "reading": "book reading book_club favourite_book author podcast newsletter followers news",
    "screen": "film series tv game board_game",
    "money": """bank loan debt savings savings_goal investment student_loan insurance salary rent
        tax budget subscription""",
    "travel": """trip holiday vacation travel travel_plan bucket_list hotel visa passport honeymoon
        emigration visited plan flight""",
    "transport": "car vehicle bicycle bike scooter commute transport parking driving",
    "animal": "pet pets cat dog vet",
    "device": "phone laptop computer camera internet software",
    "garden": "garden allotment plants",
    "event": "event wedding party plan appointment",
    "craft": "craft knitting hobby hobbies market side_business sewing",
    "assistant": "assistant form_of_address reminder",
}
_TOPICS: dict[str, set[str]] = {}
for _topic, _attributes in _TABLE.items():
    for _attribute in _attributes.split():
        _TOPICS.setdefault(_attribute, set()).add(_topic)


@lru_cache(maxsize=4096)
def topics(attribute: str) -> frozenset[str]:
    """The topics of an attribute in snake_case; none for an unknown one."""
    words = (attribute, *attribute.split("_"))
    return frozenset(topic for word in words for topic in _TOPICS.get(word, ()))


def attributes_beside(attribute: str) -> list[str]:
    """The attributes of the table that share a topic with this one, sorted."""
    same = topics(attribute)
    return sorted(name for name, its_topics in _TOPICS.items() if not same.isdisjoint(its_topics))

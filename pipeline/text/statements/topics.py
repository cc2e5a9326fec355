"""Topics of attributes: `employer` and `manager` are both about work.

A change of one attribute often changes others of its topic: who changes jobs has another manager.
words/attribute_topics.txt has the attributes that models name most; another one has the topics of
its words, so `garden_plan` is about the garden.
"""

from __future__ import annotations

from functools import lru_cache

from pipeline.text.word_lists import groups_in

_TOPICS: dict[str, set[str]] = {}
for _topic, _attributes in groups_in("attribute_topics.txt").items():
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

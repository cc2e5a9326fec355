"""Word lists in the files of words/, and those of the tokenizer.

A line of a file that begins with # is a comment.
"""

from __future__ import annotations

from importlib import resources


def lines_of(file: str) -> list[str]:
    """The lines of a file in words/, without comments and blank lines."""
    text = (resources.files("pipeline.text") / "words" / file).read_text("utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def groups_in(file: str) -> dict[str, str]:
    """The words in a file of words/ by group: a name, a colon and words, also on indented lines."""
    groups: dict[str, str] = {}
    name = ""
    for line in lines_of(file):
        if line.startswith(" "):
            groups[name] += f"\n{line}"
        else:
            name, _, words = line.partition(":")
            groups[name] = words
    return groups


def words_in(file: str) -> frozenset[str]:
    """The words in a file of words/."""
    return words_of(" ".join(lines_of(file)))


def words_of(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


STOP_WORDS = words_in("function_words.txt")
IRREGULAR = {
    form: base
    for group in " ".join(lines_of("irregular_forms.txt")).split(";")
    for base, *forms in [group.split()]
    for form in forms
}

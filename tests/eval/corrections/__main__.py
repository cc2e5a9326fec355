"""Tables of the corrections by kind and language: `python -m tests.eval.corrections`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.eval.corrections import (
    FOLDER,
    FOREIGN,
    LONG,
    Case,
    Kind,
    Verdict,
    cases,
    without_slots,
)


def main() -> None:
    """Print the cases of each verdict, with the slots of the files and without slots."""
    for name, folder in (("", FOLDER), (", long", LONG), (", foreign", FOREIGN)):
        given = list(cases(folder))
        print_table(f"slots{name}", given)
        print()
        print_table(f"no slots{name}", [without_slots(case) for case in given])
        print()


def print_table(title: str, given: Sequence[Case]) -> None:
    """Print the number of cases of each verdict."""
    verdicts = Counter((case.kind, case.language, case.verdict()) for case in given)
    languages = sorted({language for _, language, _ in verdicts})
    width = max(map(len, languages))
    print(f"{title:17} {'':{width}} {'  '.join(f'{verdict:>8}' for verdict in Verdict)}")
    for kind in Kind:
        if not any(case.kind is kind for case in given):
            continue
        for language in languages:
            row = (f"{verdicts[kind, language, verdict]:8}" for verdict in Verdict)
            print(f"{kind:17} {language:{width}} {'  '.join(row)}")
        row = (
            f"{sum(verdicts[kind, name, verdict] for name in languages):8}" for verdict in Verdict
        )
        print(f"{kind:17} {'all':{width}} {'  '.join(row)}")


if __name__ == "__main__":
    main()

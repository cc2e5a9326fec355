"""Tables of the corrections by kind and language: `python -m tests.eval.corrections`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.eval.corrections import Case, Kind, Verdict, cases, without_slots


def main() -> None:
    """Print the cases of each verdict, with the slots of the files and without slots."""
    given = list(cases())
    print_table("with slots", given)
    print()
    print_table("no slots", [without_slots(case) for case in given])


def print_table(title: str, given: Sequence[Case]) -> None:
    """Print the number of cases of each verdict."""
    verdicts = Counter((case.kind, case.language, case.verdict()) for case in given)
    languages = sorted({language for _, language, _ in verdicts})
    print(f"{title:15} {'':4} {'  '.join(f'{verdict:>8}' for verdict in Verdict)}")
    for kind in Kind:
        for language in languages:
            row = (f"{verdicts[kind, language, verdict]:8}" for verdict in Verdict)
            print(f"{kind:15} {language:4} {'  '.join(row)}")
        row = (
            f"{sum(verdicts[kind, name, verdict] for name in languages):8}" for verdict in Verdict
        )
        print(f"{kind:15} {'all':4} {'  '.join(row)}")


if __name__ == "__main__":
    main()

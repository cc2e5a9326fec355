"""Table of the corrections by kind and language: `python -m tests.eval.corrections`."""

from __future__ import annotations

from collections import Counter

from tests.eval.corrections import Kind, Verdict, cases


def main() -> None:
    """Print the number of cases of each verdict."""
    verdicts = Counter((case.kind, case.language, case.verdict()) for case in cases())
    languages = sorted({language for _, language, _ in verdicts})
    print(f"{'':15} {'':4} {'  '.join(f'{verdict:>8}' for verdict in Verdict)}")
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

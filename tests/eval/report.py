"""docs/benchmarks/evaluation.*: figures as JSON, tables and a plot.

    python -m tests.eval.report      writes tables and the plot of the recorded figures again

`make eval` records figures; those of other models, or of parts that were not run, are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

from deploy.docs.tables import table
from tests.eval.models import STAND_IN

mpl.use("Agg")
from matplotlib import pyplot

FOLDER = Path("docs/benchmarks")
RECORD = FOLDER / "evaluation.json"
Figures = Mapping[str, Any]
INTRO = f"""# Evaluation

`make eval` measures whether memories are right, with a stand-in for a model: dialogues of our own
(`tests/eval`), a real stack, HTTP. `make eval MODEL=openai/…` measures a live model and adds it to
this page; `JUDGE=openai/…` names the model that judges its answers. `{STAND_IN}` knows the
dialogues: its figures are those of Memlane with a perfect model, not of any model.
"""
SCENARIOS = """
Every scenario is a dialogue of a user with the memories that must stand at its end, in English,
German, Spanish and Chinese. `right`: exactly these stand. `kept`: expected memories whose names,
numbers and dates stand together. `stale`: superseded facts that still stand. `harmed`: memories
that are gone although no later statement supersedes them and no memory has their names, numbers and
dates. `good`: the stand-in answers right. `out of order`: the same turns with their timestamps, in
a shuffled order; a take-back that arrives before its statement may stand as a memory. `dates
ignored`: the same with a model that takes what arrives last for the newest. `among 190 memories`:
every eighth scenario, of a user who has 190 other memories; `summarized`: who also had a long
conversation, so that each extraction has its summary and its last messages. The other rows are bad
models: the right answers, spoiled in one way each. Tokens are those of o200k_base.
Command: `.venv/bin/python -m tests.eval.scenarios`.
"""
GRAPHS = """
Dialogues with the graph that must stand at their end: moves, marriages and divorces, ownership,
employers, other names, two persons of one name, passive voice, negation, plans, in four languages.
`right`: exactly the expected nodes, current relations and ends. `harmed`: right relations that are
gone although no fact of the dialogue ends them, and nodes that no dialogue names. The rows below
`good` are bad models: each spoils the relations in one way, and keeps to it when it is asked for a
repair. Invalid relations are then left out and the graph is partial; it fails if none is valid. The
add itself never does.
Command: `.venv/bin/python -m tests.eval.graphs`.
"""
LATE = """
The same dialogues, each played twice by the good model: with its messages in order, and with its
messages in a shuffled order but their own dates. For the time of each message, the graph that the
API returns with `valid_at` must be the same both times. `right`: times for which it is. `missing`
and `extra`: relations that a graph after shuffled arrival lacks, or has too much, over all times.
Command: `.venv/bin/python -m tests.eval.graphs.late`.
"""
QUESTIONS = """
Questions about five long conversations of our own, all of one user, answered from Memlane's best
memories, from the nearest chunks of the text (RAG, `local/minilm`), and from the whole text.
The stand-in keeps each message as a memory, and answers right if the context has the evidence.
Latencies: one caller, p50 / p95 in ms. Command: `.venv/bin/python -m tests.eval.questions`.
"""


def record(part: str, figures: Any, model: str = STAND_IN) -> None:
    """Merge the figures of a part into the record, then write the page and its plot."""
    report = recorded()
    models = report["models"]
    models.setdefault(model, {})[part] = figures
    today = datetime.now(UTC).date().isoformat()  # noqa: TID251
    report.setdefault("at", today)
    report.setdefault("dates", {}).setdefault(model, {})[part] = today
    report["cores"] = os.cpu_count()
    RECORD.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write(report)


def recorded() -> dict[str, Any]:
    """The recorded figures; without a record, no model."""
    return dict(json.loads(RECORD.read_text("utf-8"))) if RECORD.exists() else {"models": {}}


def write(report: Figures) -> None:
    """Write the page and its plot."""
    (FOLDER / "evaluation.md").write_text(page(report), encoding="utf-8")
    plot(report)


def page(report: Figures) -> str:
    """Markdown page of the recorded figures."""
    parts = [INTRO]
    if "at" in report:
        parts.append(f"Recorded {_first_date(report)}, {report['cores']} cores.\n")
    for title, about, part, draw in (
        ("Scenarios", SCENARIOS, "scenarios", scenario_table),
        ("Graphs", GRAPHS, "graphs", graph_table),
        ("Graphs after shuffled arrival", LATE, "graphs_late", late_table),
        ("Questions", QUESTIONS, "questions", question_table),
    ):
        models = {name: run[part] for name, run in report["models"].items() if part in run}
        if models:
            parts.append(f"## {title}\n{about}")
            parts += [
                f"{_later_date(report, name, part)}`{name}`:\n\n{draw(figures)}"
                for name, figures in models.items()
            ]
    if any("questions" in run for run in report["models"].values()):
        parts.append("![F1 by method and model](evaluation.png)\n")
    return "\n".join([*parts, *_printed(report)])


def _date(report: Figures, model: str, part: str) -> str:
    """The day on which a part was recorded; `at` is that of parts without one of their own."""
    return str(report.get("dates", {}).get(model, {}).get(part) or report.get("at", ""))


def _first_date(report: Figures) -> str:
    """The oldest day of a part."""
    models = report["models"]
    dates = [_date(report, model, part) for model, run in models.items() for part in run]
    return min(dates, default=str(report["at"]))


def _later_date(report: Figures, model: str, part: str) -> str:
    """A paragraph for a part that was recorded later than the oldest one."""
    date = _date(report, model, part)
    return f"Recorded {date}.\n\n" if date and date != _first_date(report) else ""


def _printed(report: Figures) -> list[str]:
    """The output of other commands."""
    stand_in = report["models"].get(STAND_IN, {})
    return [
        f"## {title}\n\n{_later_date(report, STAND_IN, part)}Command: `{command}`.\n\n"
        f"```text\n{stand_in[part].strip()}\n```\n"
        for part, (title, command) in PRINTED.items()
        if part in stand_in
    ]


PRINTED = {
    "beliefs": ("Exact belief sets", ".venv/bin/python -m tests.eval.beliefs"),
    "corrections": (
        "Corrections that take, and careless changes that do not",
        ".venv/bin/python -m tests.eval.corrections",
    ),
    "paths": ("Questions of two and three hops", ".venv/bin/python -m tests.eval.paths"),
    "candidates": ("Candidates", ".venv/bin/python -m tests.eval.candidates"),
    "precision": (
        "Precision of filter_memories and of the default cut",
        ".venv/bin/python -m tests.eval.precision",
    ),
}


def scenario_table(ways: Figures) -> str:
    """A row for each way."""
    head = (
        "way", "right", "several targets", "kept", "stale", "harmed", "failed adds", "calls an add",
        "prompt tokens an add", "most", "s",
    )  # fmt: skip
    rows = [
        (
            name.replace("_", " "),
            f"{way['right']} of {way['scenarios']}",
            f"{way['many_targets_right']} of {way['many_targets']}",
            f"{way['kept']} of {way['expected']}",
            f"{way['stale']}",
            f"{way['harmed']}",
            f"{way['failed']} of {way['adds']}",
            f"{way['calls_per_add']}",
            f"{way['prompt_tokens_per_add']}",
            f"{way['prompt_tokens_most']}",
            f"{way['seconds']:.0f}",
        )
        for name, way in ways.items()
    ]
    return table(head, rows)


def graph_table(ways: Figures) -> str:
    """A row for each way."""
    head = (
        "way", "right", "current relations", "ends", "harmed", "failed adds", "partial graphs",
        "failed graphs", "calls an add", "s",
    )  # fmt: skip
    rows = [
        (
            name.replace("_", " "),
            f"{way['right']} of {way['dialogues']}",
            f"{way['current']} of {way['expected']}",
            f"{way['ended']} of {way['ends_expected']}",
            f"{way['harmed']}",
            f"{way['failed']} of {way['adds']}",
            f"{way['graphs_partial']}",
            f"{way['graphs_failed']}",
            f"{way['calls_per_add']}",
            f"{way['seconds']:.0f}",
        )
        for name, way in ways.items()
    ]
    return table(head, rows)


def late_table(figures: Figures) -> str:
    """A row for each language, and one for all."""
    rows = [
        (
            language,
            f"{row['dialogues']}",
            f"{row['right']} of {row['times']}",
            f"{row['missing']}",
            f"{row['extra']}",
        )
        for language, row in figures.items()
    ]
    return table(("language", "dialogues", "right", "missing", "extra"), rows)


def question_table(figures: Figures) -> str:
    """A row for each method."""
    methods = figures["methods"]
    kinds = next(iter(methods.values()))["f1_by_kind"]
    head = (
        "method", "F1", "BLEU-1", "judge", *(f"F1 {kind}" for kind in kinds), "context tokens",
        "search", "search and answer",
    )  # fmt: skip
    rows = [
        (
            name,
            f"{row['f1']}",
            f"{row['bleu1']}",
            "" if row["judge"] is None else f"{row['judge']}",
            *(f"{row['f1_by_kind'][kind]}" for kind in kinds),
            f"{row['context_tokens']}",
            _latency(row["search_ms"]),
            _latency(row["total_ms"]),
        )
        for name, row in methods.items()
    ]
    return table(head, rows)


def _latency(ms: Sequence[float]) -> str:
    return f"{ms[0]:.0f} / {ms[1]:.0f}"


def plot(report: Figures) -> None:
    """Plot F1 over the tokens of the context, a point for each method and model."""
    models = {
        name: run["questions"] for name, run in report["models"].items() if "questions" in run
    }
    if not models:
        return
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for number, (model, figures) in enumerate(models.items()):
        methods = figures["methods"]
        across = [row["context_tokens"] for row in methods.values()]
        axes.scatter(
            across, [row["f1"] for row in methods.values()], label=model, color=f"C{number}"
        )
        for name, row in methods.items():
            at = (row["context_tokens"], row["f1"])
            axes.annotate(name, at, xytext=(5, 5), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(100, 20_000)
    axes.set_xticks([100, 300, 1_000, 3_000, 10_000], ["100", "300", "1,000", "3,000", "10,000"])
    axes.minorticks_off()
    axes.set_xlabel("tokens of the context")
    axes.set_ylabel("F1")
    axes.set_ylim(0, 108)
    axes.legend(fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    path = FOLDER / "evaluation.png"
    figure.savefig(path, dpi=120, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    write(recorded())

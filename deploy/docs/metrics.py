"""docs/reference/metrics.md."""

from __future__ import annotations

from prometheus_client.metrics import MetricWrapperBase

from deploy.docs.tables import GENERATED, table
from pipeline import telemetry

INTRO = """# Metrics

`GET /metrics` answers in the Prometheus text format for all processes that share the data
directory. Series whose labels are known in advance exist from the start, at zero. Gauges of the
ledger are at most five seconds old. Histograms have the suffixes `_bucket`, `_sum` and `_count`.

"""


def page() -> str:
    """Every metric of Memlane, by name."""
    metrics = [m for m in vars(telemetry).values() if isinstance(m, MetricWrapperBase)]
    return (
        GENERATED
        + INTRO
        + table(("metric", "type", "labels", "meaning"), sorted(map(_row, metrics)))
    )


def _row(metric: MetricWrapperBase) -> tuple[str, str, str, str]:
    [family] = metric.describe()
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001  no public name
    return f"`{name}`", family.type, labels, family.documentation

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


def metrics() -> list[MetricWrapperBase]:
    """Every metric of Memlane."""
    return [m for m in vars(telemetry).values() if isinstance(m, MetricWrapperBase)]


def family_name(metric: MetricWrapperBase) -> str:
    """Name of a metric without the suffixes of its series."""
    [family] = metric.describe()
    return str(family.name)


def series() -> set[str]:
    """Names of all series, as Prometheus stores them."""
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    families = [family for metric in metrics() for family in metric.describe()]
    return {family.name + suffix for family in families for suffix in suffixes[family.type]}


def page() -> str:
    """Every metric of Memlane, by name."""
    rows = sorted(map(_row, metrics()))
    return GENERATED + INTRO + table(("metric", "type", "labels", "meaning"), rows)


def _row(metric: MetricWrapperBase) -> tuple[str, str, str, str]:
    [family] = metric.describe()
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001  no public name
    return f"`{name}`", family.type, labels, family.documentation

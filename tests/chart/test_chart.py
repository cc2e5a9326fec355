"""The Helm chart: linted, rendered by Helm and held against the schemas of Kubernetes.

`make chart-test` installs Helm's library and the schemas, and runs this. No cluster is needed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import helm_sdkpy
import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.chart.cluster import Cluster, running

CHART = Path(__file__).resolve().parents[2] / "deploy/kubernetes/memlane"
CRDS = Path(__file__).parent / "crds"
SQL = CHART.parents[2] / "pipeline/lanes/sql/dispatchable_age.sql"
# The oldest release that Chart.yaml allows, and the newest whose schemas are known.
KUBERNETES = ("1.29", "1.37")
CHROMA: Mapping[str, Any] = {"vectors": {"chromaUrl": "http://chroma:8000"}}
PROCESSES = ("api", "worker", "sweeper")

CASES: dict[str, Mapping[str, Any]] = {
    "chroma": CHROMA,
    "pgvector": {"vectors": {"backend": "pgvector"}, "image": {"digest": f"sha256:{'0' * 64}"}},
    "keda": {
        **CHROMA,
        "worker": {
            "autoscaling": {"by": "keda", "keda": {"existingSecret": "reader", "key": "url"}}
        },
    },
    "hpa": {
        **CHROMA,
        "worker": {"autoscaling": {"by": "hpa"}},
        "api": {"autoscaling": {"enabled": True}},
    },
    "all": {
        **CHROMA,
        "settings": {"MEMLANE_LLM__MODEL": "openai/gpt-4o", "MEMLANE_WORKER_CONCURRENCY": "50"},
        "secretSettings": {"MEMLANE_LLM__API_KEY": {"secret": "openai", "key": "api-key"}},
        "imagePullSecrets": ["registry"],
        "metrics": {
            "existingSecret": "memlane",
            "monitors": True,
            "rules": True,
            "labels": {"team": "ai"},
        },
        "networkPolicy": {
            "apiFrom": [{"podSelector": {"matchLabels": {"app": "chat"}}}],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
        "nodeSelector": {"pool": "memlane"},
        "tolerations": [{"key": "pool", "operator": "Exists"}],
        "podAnnotations": {"checked": "yes"},
        "worker": {"stopSeconds": 60},
    },
}  # fmt: skip

Manifest = dict[str, Any]
RENDERED: dict[str, dict[tuple[str, str], Manifest]] = {}


async def install(cluster: Cluster, values: Mapping[str, Any], chart: Path = CHART) -> None:
    """Install the chart until its first hook, or raise Helm's error.

    Errors: HelmError if nothing was rendered.
    """
    await _run(helm_sdkpy.Install, cluster, values, chart)


async def upgrade(cluster: Cluster, values: Mapping[str, Any], chart: Path) -> None:
    """Upgrade to the chart until its first hook. Errors: HelmError if nothing was rendered."""
    await _run(helm_sdkpy.Upgrade, cluster, values, chart)


async def _run(action: Any, cluster: Cluster, values: Mapping[str, Any], chart: Path) -> None:
    before = len(cluster.releases)
    with helm_sdkpy.Configuration(namespace="memory", kubeconfig=cluster.kubeconfig) as helm:
        try:
            await action(helm).run(
                "memlane", str(chart), values=dict(values), wait=False, timeout=30
            )
        except helm_sdkpy.HelmError:
            if len(cluster.releases) == before:
                raise


def manifests(cluster: Cluster) -> list[Manifest]:
    """All manifests of the newest release, hooks too."""
    release = cluster.releases[-1]
    texts = [release["manifest"], *(hook["manifest"] for hook in release["hooks"])]
    return [body for text in texts for body in yaml.safe_load_all(text) if body]


async def rendered(case: str) -> dict[tuple[str, str], Manifest]:
    """Manifests of a case by kind and name, rendered once."""
    if case not in RENDERED:
        with running() as cluster:
            await install(cluster, CASES[case])
            bodies = manifests(cluster)
        RENDERED[case] = {(body["kind"], body["metadata"]["name"]): body for body in bodies}
        assert len(RENDERED[case]) == len(bodies)
    return RENDERED[case]


@cache
def crd(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CRDS / f"{kind}.json").read_text("utf-8"))
    return schema


def pods(bodies: Mapping[tuple[str, str], Manifest]) -> dict[str, Manifest]:
    """Pod specifications by component."""
    return {
        body["metadata"]["labels"]["app.kubernetes.io/component"]: body["spec"]["template"]["spec"]
        for (kind, _), body in bodies.items()
        if kind in ("Deployment", "Job")
    }


def environment(pod: Manifest) -> dict[str, Any]:
    return {entry["name"]: entry for entry in pod["containers"][0]["env"]}


async def test_helm_finds_nothing_to_lint() -> None:
    with running() as cluster, helm_sdkpy.Configuration(kubeconfig=cluster.kubeconfig) as helm:
        result = await helm_sdkpy.Lint(helm).run(str(CHART))
    # Severity 1 is advice: the chart has no icon.
    assert [line["Severity"] for line in result["Messages"]] == [1]
    assert not result["Errors"]


@pytest.mark.parametrize("case", CASES)
async def test_every_manifest_is_valid(case: str) -> None:
    for (kind, name), body in (await rendered(case)).items():
        assert body["metadata"]["labels"]["app.kubernetes.io/instance"] == "memlane", name
        if (CRDS / f"{kind}.json").exists():
            jsonschema.validate(body, crd(kind))
        else:
            for version in KUBERNETES:
                kubernetes_validate.validate(body, version, strict=True)


async def test_the_manifests_of_a_default_install() -> None:
    kinds = sorted(f"{kind}/{name}" for kind, name in await rendered("chroma"))
    assert kinds == [
        "ConfigMap/memlane-release",
        *(f"Deployment/memlane-{name}" for name in sorted(PROCESSES)),
        "Job/memlane-migrate",
        *(f"NetworkPolicy/memlane-{name}" for name in sorted((*PROCESSES, "migrate"))),
        *(f"PodDisruptionBudget/memlane-{name}" for name in sorted(PROCESSES)),
        "Service/memlane",
    ]


@pytest.mark.parametrize("case", CASES)
async def test_a_pod_has_no_more_than_it_needs(case: str) -> None:
    for component, pod in pods(await rendered(case)).items():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True, component
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]) == {"requests", "limits"}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("case", CASES)
async def test_secrets_are_references(case: str) -> None:
    for component, pod in pods(await rendered(case)).items():
        variables = environment(pod)
        for name in ("MEMLANE_DATABASE_URL", "MEMLANE_BROKER_URL"):
            assert "secretKeyRef" in variables[name]["valueFrom"], component
        if "secretSettings" in CASES[case]:
            reference = variables["MEMLANE_LLM__API_KEY"]["valueFrom"]["secretKeyRef"]
            assert reference == {"name": "openai", "key": "api-key"}


async def test_no_probe_asks_the_database() -> None:
    bodies = pods(await rendered("chroma"))
    for component in PROCESSES:
        [container] = bodies[component]["containers"]
        names = ("startup", "liveness", "readiness")
        probes = {name: container[f"{name}Probe"]["httpGet"] for name in names}
        assert probes["startup"]["path"] == probes["liveness"]["path"] == "/livez"
        # The API's /readyz asks the database; those of the other processes do not.
        assert probes["readiness"]["path"] == ("/livez" if component == "api" else "/readyz")
        assert {probe["port"] for probe in probes.values()} == {container["ports"][0]["name"]}


@pytest.mark.parametrize(("case", "stop_s"), [("chroma", 20), ("all", 60)])
async def test_a_worker_has_the_time_that_its_drain_takes(case: str, stop_s: int) -> None:
    pod = pods(await rendered(case))["worker"]
    assert environment(pod)["MEMLANE_STOP_S"]["value"] == str(stop_s)
    assert pod["terminationGracePeriodSeconds"] >= stop_s + 5


async def test_keda_asks_the_statement_of_the_metric() -> None:
    bodies = await rendered("keda")
    spec = bodies["ScaledObject", "memlane-worker"]["spec"]
    [trigger] = spec["triggers"]
    assert trigger["metadata"]["query"].rstrip() == SQL.read_text("utf-8").rstrip()
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 4}
    reference = bodies["TriggerAuthentication", "memlane-worker"]["spec"]["secretTargetRef"]
    assert reference == [{"parameter": "connection", "name": "reader", "key": "url"}]
    # A fixed number of replicas would reset the scaler's number in each upgrade.
    assert "replicas" not in bodies["Deployment", "memlane-worker"]["spec"]


async def test_a_monitor_sends_the_token() -> None:
    bodies = await rendered("all")
    [endpoint] = bodies["ServiceMonitor", "memlane-api"]["spec"]["endpoints"]
    [pod] = bodies["PodMonitor", "memlane-processes"]["spec"]["podMetricsEndpoints"]
    token = {"type": "Bearer", "credentials": {"name": "memlane", "key": "metrics-token"}}
    assert endpoint["authorization"] == pod["authorization"] == token
    assert bodies["ServiceMonitor", "memlane-api"]["metadata"]["labels"]["team"] == "ai"


async def test_the_rules_are_those_of_the_monitoring_folder() -> None:
    rules = yaml.safe_load((CHART.parents[1] / "monitoring/memlane.rules.yaml").read_text("utf-8"))
    assert (await rendered("all"))["PrometheusRule", "memlane"]["spec"] == rules


async def test_network_policies_select_the_pods_of_one_component_each() -> None:
    bodies = await rendered("all")
    for component in (*PROCESSES, "migrate"):
        spec = bodies["NetworkPolicy", f"memlane-{component}"]["spec"]
        assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert len(spec["ingress"]) == (component != "migrate")
        assert len(spec["egress"]) == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"worker": {"replicas": 0}}, "/worker/replicas"),
        ({"worker": {"replica": 3}}, "replica"),
        ({"worker": {"autoscaling": {"by": "cpu"}}}, "/worker/autoscaling/by"),
        ({"database": {"url": "postgresql://u:p@host/db"}}, "url"),
        ({"vectors": {"backend": "faiss"}}, "/vectors/backend"),
        ({"settings": {"MEMLANE_LLM__API_KEY": "sk-1"}}, "MEMLANE_LLM__API_KEY"),
        ({"settings": {"MEMLANE_PORT": "1"}}, "MEMLANE_PORT"),
        ({"settings": {"LLM": "x"}}, "LLM"),
        ({"image": {"digest": "sha256:1"}}, "/image/digest"),
        ({"vectors": {"chromaUrl": ""}}, "vectors.chromaUrl is empty"),
        ({"metrics": {"monitors": True}}, "metrics.monitors needs metrics.existingSecret"),
        ({"worker": {"autoscaling": {"minReplicas": 9, "maxReplicas": 3}}}, "is larger than"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_a_wrong_value_is_refused_by_name(values: Mapping[str, Any], message: str) -> None:
    with running() as cluster, pytest.raises(helm_sdkpy.HelmError) as refused:
        await install(cluster, {**CHROMA, **values})
    assert message in str(refused.value)


# ── upgrade guard ────────────────────────────────────────────────────────────────────────────────


def chart_of(folder: Path, release: str) -> Path:
    """A copy of the chart for another release, of which 0.3.0 is a breaking one."""
    copy = shutil.copytree(CHART, folder / "memlane")
    info = yaml.safe_load((copy / "Chart.yaml").read_text("utf-8"))
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**info, "appVersion": release}))
    breaking = {"releases": [{"release": "0.3.0", "reason": "scale to 0 first"}]}
    (copy / "files/breaking.yaml").write_text(yaml.safe_dump(breaking))
    return copy


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("0.1.0", "0.1.0", None),
        ("0.1.0", "0.2.0", None),
        ("0.3.0", "0.3.1", None),
        ("0.2.0", "0.1.0", "Memlane 0.2.0 runs here, and 0.1.0 does not know its schema"),
        ("0.1.0", "0.3.0", "upgrade to 0.2 first"),
        ("0.9.0", "1.0.0", "upgrade to 0.10 first"),
        ("0.2.4", "0.3.0", "Memlane 0.3.0 breaks with 0.2.4, which runs here: scale to 0 first."),
        ("0.2.4", "0.3.5", "Then name it in upgrade.accept."),
    ],
)
async def test_an_upgrade_that_the_schema_does_not_allow_is_refused(
    tmp_path: Path, before: str, after: str, message: str | None
) -> None:
    with running() as cluster:
        await install(cluster, CHROMA)
        record = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"version": before}}
        cluster.configmaps["memlane-release"] = {**record, "metadata": {"name": "memlane-release"}}
        chart = chart_of(tmp_path, after)
        if message is None:
            await upgrade(cluster, CHROMA, chart)
            assert len(cluster.releases) == 2
            return
        with pytest.raises(helm_sdkpy.HelmError) as refused:
            await upgrade(cluster, CHROMA, chart)
        assert message in str(refused.value)


async def test_a_breaking_release_is_accepted_by_name(tmp_path: Path) -> None:
    with running() as cluster:
        await install(cluster, CHROMA)
        record = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"version": "0.2.4"}}
        cluster.configmaps["memlane-release"] = {**record, "metadata": {"name": "memlane-release"}}
        accepted = {**CHROMA, "upgrade": {"accept": ["0.3.0"]}}
        await upgrade(cluster, accepted, chart_of(tmp_path, "0.3.0"))
        assert len(cluster.releases) == 2

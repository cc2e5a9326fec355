"""A stand-in for a cluster's API that keeps releases and refuses the rest, so that Helm can render.

Helm stores a release, with its manifests and hooks, before it creates the first hook, which the
stand-in refuses: nothing is waited for, and the release is read back.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import yaml

# Kinds by group and version; those of a cluster with KEDA and the Prometheus operator.
KINDS = {
    "v1": ("ConfigMap", "Secret", "Service"),
    "apps/v1": ("Deployment",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "batch/v1": ("Job",),
    "keda.sh/v1alpha1": ("ScaledObject", "TriggerAuthentication"),
    "monitoring.coreos.com/v1": ("PodMonitor", "PrometheusRule", "ServiceMonitor"),
    "networking.k8s.io/v1": ("NetworkPolicy",),
    "policy/v1": ("PodDisruptionBudget",),
}


def plural(kind: str) -> str:
    """The path segment of a kind."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


class Cluster:
    """Releases, ConfigMaps by name, and the API's address."""

    def __init__(self) -> None:
        self.releases: list[dict[str, Any]] = []
        self.configmaps: dict[str, dict[str, Any]] = {}
        self.url = ""

    @property
    def kubeconfig(self) -> str:
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "here", "cluster": {"server": self.url}}],
                "users": [{"name": "here", "user": {}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
            }
        )

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and body of an answer."""
        parts = path.strip("/").split("/")
        if method == "GET" and (listing := discovery(parts)) is not None:
            return 200, listing
        match method, parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else ():
            case "GET", ["secrets"]:
                items = list(map(secret_of, self.releases))
                code, answer = 200, {"apiVersion": "v1", "kind": "SecretList", "items": items}
            case "GET", ["configmaps", name] if name in self.configmaps:
                code, answer = 200, self.configmaps[name]
            case "POST", ["secrets"]:
                self.releases.append(release_in(body))
                code, answer = 201, secret_of(self.releases[-1])
            case "PUT", ["secrets", name]:
                [stored] = [r for r in self.releases if name.endswith(f"v{r['version']}")]
                code, answer = 200, secret_of(stored)
            case "GET", _:
                code, answer = 404, status(404, path)
            case _:
                code, answer = 403, status(403, "the stand-in runs nothing")
        return code, answer


def release_in(body: bytes) -> dict[str, Any]:
    """The release in the request that creates its Secret, whose body is Protobuf.

    It is the value of the map entry `release`: a length as a varint, and that number of bytes.
    """
    start = body.index(b"\n\x07release\x12") + len(b"\n\x07release\x12")
    length = shift = 0
    while True:
        byte = body[start]
        start, length, shift = start + 1, length | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            break
    release: dict[str, Any] = json.loads(
        gzip.decompress(base64.b64decode(body[start : start + length]))
    )
    return release


def secret_of(release: dict[str, Any]) -> dict[str, Any]:
    """The Secret of a release, whose hooks count as done."""
    name, version = release["name"], str(release["version"])
    done = {**release, "info": {**release["info"], "status": "deployed"}}
    packed = base64.b64encode(gzip.compress(json.dumps(done).encode()))
    labels = {"owner": "helm", "name": name, "status": "deployed", "version": version}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {"name": f"sh.helm.release.v1.{name}.v{version}", "labels": labels},
        "data": {"release": base64.b64encode(packed).decode()},
    }


def status(code: int, message: str) -> dict[str, Any]:
    """The API's body of an error."""
    reason = {403: "Forbidden", 404: "NotFound"}[code]
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def discovery(parts: list[str]) -> dict[str, Any] | None:
    """The answer to a request for versions, groups or kinds, else None."""
    groups = [name for name in KINDS if "/" in name]
    match parts:
        case ["version"]:
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(map(_group, groups))}
        case ["api", "v1"]:
            return _kinds("v1")
        case ["apis", group, version] if f"{group}/{version}" in KINDS:
            return _kinds(f"{group}/{version}")
    return None


def _group(name: str) -> dict[str, Any]:
    group, _, version = name.partition("/")
    served = {"groupVersion": name, "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _kinds(name: str) -> dict[str, Any]:
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    resources = [
        {"name": plural(kind), "singularName": "", "namespaced": True, "kind": kind, "verbs": verbs}
        for kind in KINDS[name]
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": name,
        "resources": resources,
    }


@contextmanager
def running() -> Iterator[Cluster]:
    """A stand-in on a free port of the loopback address."""
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            code, answer = cluster.answer(
                self.command, urlsplit(self.path).path, self.rfile.read(length)
            )
            text = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815  the names of http.server

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

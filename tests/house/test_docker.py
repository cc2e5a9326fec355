"""deploy/docker: services, commands and settings are ones that exist. No image is built here."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import version

import pytest
from pydantic import SecretStr

from deploy.cli.plan import CONNECTIONS
from deploy.stack.programs import CHILD_ENVIRONMENT, PROGRAMS
from pipeline.settings import Settings, known_names
from tests.support.compose import FOLDER, ComposeService, example_values, services

# Prepares the files of Chroma: it has Memlane's image, and is no process of Memlane.
PREPARING = "chroma-files"
OURS = [service for service in services().values() if service.ours and service.name != PREPARING]
# What compose.yaml reads besides settings.
FOR_COMPOSE = {"POSTGRES_PASSWORD", "VALKEY_PASSWORD", "PUBLISHED_ADDRESS"}
# Settings that hold a secret or name a model, and so concern every operator.
MODELS = ("LLM", "EMBEDDER", "RERANKER")


def test_the_services_are_the_processes_of_the_stack() -> None:
    assert set(services()) == {
        *("postgres", "valkey", "chroma"),
        *("chroma-files", "migrate", "api", "worker", "sweeper"),
    }
    assert {service.name for service in OURS} == {"migrate", "api", "worker", "sweeper"}
    assert services()["worker"].raw["deploy"]["replicas"] == 2


def test_postgresql_has_the_connections_of_the_scale_that_the_page_shows() -> None:
    """Beside API, sweeper and workers: a command, and the connections of the superuser."""
    page = (FOLDER.parents[1] / "docs/howto/docker.md").read_text("utf-8")
    workers = re.search(r"--scale worker=(\d+)", page)
    options = " ".join(services()["postgres"].command)
    allowed = re.search(r"max_connections=(\d+)", options)
    assert workers
    assert allowed
    assert (int(workers[1]) + 3) * CONNECTIONS <= int(allowed[1]) - 3


@pytest.mark.parametrize("service", OURS, ids=lambda service: service.name)
def test_a_service_runs_the_same_command_as_the_local_stack(service: object) -> None:
    [ours] = [candidate for candidate in OURS if candidate is service]
    known = {argv[1]: argv for argv in PROGRAMS.values()}
    assert importlib.util.find_spec(ours.module) is not None
    options = {word for word in ours.command if word.startswith("--")}
    assert options <= {word for word in known[ours.module] if word.startswith("--")}


@pytest.mark.parametrize("service", OURS, ids=lambda service: service.name)
def test_a_service_sets_known_settings_only(service: object) -> None:
    [ours] = [candidate for candidate in OURS if candidate is service]
    assert set(ours.environment) <= known_names()
    assert ours.raw["env_file"] == ".env"


def test_only_the_api_publishes_a_port_and_on_loopback_by_default() -> None:
    published = {service.name: service.ports for service in services().values() if service.ports}
    assert published == {"api": ("${PUBLISHED_ADDRESS:-127.0.0.1:8000}:8000",)}
    assert example_values()["PUBLISHED_ADDRESS"] == "127.0.0.1:8000"


def test_every_service_is_checked_and_kept_running() -> None:
    for name, service in services().items():
        if name in ("migrate", PREPARING):
            assert service.raw["restart"] == "no"
            continue
        assert service.raw["restart"] == "unless-stopped", name
        assert service.raw["healthcheck"]["test"], name


def test_chroma_starts_after_its_files_are_prepared() -> None:
    files, chroma = services()[PREPARING], services()["chroma"]
    assert chroma.raw["depends_on"] == {PREPARING: {"condition": "service_completed_successfully"}}
    assert files.raw["volumes"] == chroma.raw["volumes"]
    assert importlib.util.find_spec(files.module) is not None
    assert files.raw["network_mode"] == "none"


def test_what_keeps_data_has_a_volume() -> None:
    for name in ("postgres", "valkey", "chroma", "migrate", "api"):
        assert services()[name].raw["volumes"], name


@pytest.mark.parametrize("service", services().values(), ids=lambda service: service.name)
def test_a_service_has_no_more_than_it_needs(service: ComposeService) -> None:
    raw = service.raw
    assert raw["cap_drop"] == ["ALL"]
    assert set(raw.get("cap_add", ())) <= {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}
    assert service.ours <= ("cap_add" not in raw)
    assert raw["security_opt"] == ["no-new-privileges:true"]
    assert raw["read_only"] is True
    assert "/tmp" in raw.get("tmpfs", ["/tmp"])
    assert raw["mem_limit"]
    assert raw["logging"]["options"].keys() == {"max-size", "max-file"}


def test_images_of_others_are_pinned() -> None:
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    images = [s.raw["image"] for s in services().values() if not s.ours]
    for image in images + re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert re.search(r":\d+\.\d+(\.\d+)?(-|$)", image), image


def test_the_database_role_is_no_superuser() -> None:
    script = (FOLDER / "create-role.sh").read_text("utf-8")
    assert "CREATE ROLE memlane LOGIN" in script
    assert "SUPERUSER" not in script
    assert "POSTGRES_USER" not in services()["postgres"].environment
    assert any("create-role.sh" in volume for volume in services()["postgres"].raw["volumes"])


def test_chroma_is_the_version_that_the_tests_run() -> None:
    assert services()["chroma"].raw["image"] == f"chromadb/chroma:{version('chromadb')}"


def test_the_example_names_settings_that_exist_with_their_defaults() -> None:
    values = example_values()
    names = set(values) - FOR_COMPOSE
    assert names <= known_names()
    for name in names:
        default: object = Settings.model_construct()
        for part in name.removeprefix("MEMLANE_").lower().split("__"):
            default = getattr(default, part)
        if values[name]:
            assert (
                float(values[name]) == default if _is_number(default) else (values[name] == default)
            ), name
        else:
            assert default in (None, ""), name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def test_the_example_has_every_secret_and_every_model() -> None:
    given = set(example_values()) | set(services()["api"].environment)
    secrets = {
        f"MEMLANE_{name.upper()}"
        for name, field in Settings.model_fields.items()
        if SecretStr in getattr(field.annotation, "__args__", ())
    }
    models = {f"MEMLANE_{m}__{part}" for m in MODELS for part in ("MODEL", "API_BASE", "API_KEY")}
    assert len(secrets) >= 4
    assert secrets | models <= given


def test_every_variable_that_compose_needs_is_in_the_example() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    needed = set(re.findall(r"\$\{([A-Z_]+)", text))
    assert needed == FOR_COMPOSE <= set(example_values())


def test_the_image_runs_as_a_user_and_with_the_stacks_environment() -> None:
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    final = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER memlane$", final, re.MULTILINE)
    for name, value in CHILD_ENVIRONMENT.items():
        assert re.search(rf"\b{name}={value}\b", final), name


def test_the_image_has_every_package_of_the_wheel() -> None:
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    assert set(re.findall(r"^COPY ([\w/]+) \1$", text, re.MULTILINE)) == packages
    allowed = (FOLDER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert {f"!{package}" for package in packages} <= set(allowed)

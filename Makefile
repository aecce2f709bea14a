.DEFAULT_GOAL := help
.SUFFIXES:
BIN := .venv/bin
PYTHON ?= python3
QUIET := --no-print-directory

.PHONY: help
help: ## Show this message
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- the environment -----------------------------------------------------------------------

.PHONY: setup
setup: .venv/.ready ## Make .venv with everything that requirements.lock pins

.venv/.ready: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) tools/check_python.py
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Installing what requirements.lock pins into .venv (once, about a minute) ..."
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: lock
lock: setup ## Pin the newest versions in requirements.lock
	@$(BIN)/uv pip compile --quiet --group dev pyproject.toml --no-emit-index-url --generate-hashes --universal --python-version 3.11 --upgrade -o requirements.lock

# ---- running it ----------------------------------------------------------------------------

.PHONY: demo
demo: setup ## Run two jobs and a flow through everything, in a home of its own, and clean up
	@$(BIN)/python -m hekla.local.stack.demo

.PHONY: up
up: setup ## Start Postgres, a local cluster and the four services
	@$(BIN)/hekla up --detach

.PHONY: down
down: setup ## Stop what `make up` started
	@$(BIN)/hekla down

# ---- the gate ------------------------------------------------------------------------------

.PHONY: test
test: setup ## Run lint and every test, with the time each stage took (what CI runs)
	@$(BIN)/python -m tools.gate

.PHONY: chaos
chaos: setup ## Run every round of killing and cutting off; CHAOS_SEED picks another order
	@$(BIN)/python -m pytest tests/chaos

SOAK ?=
.PHONY: soak
soak: setup ## Apply one file of all kinds by kubectl, 100 times on fresh names; SOAK="--rounds 10" for less
	@$(BIN)/python -m tests.soak $(SOAK)

.PHONY: bench
bench: setup ## Print the speed of the scheduling core, beside the oracle's, of the Kubernetes client, the local cluster, admission and the mirror
	@missed=0; for part in core scheduler kube local admission mirror; do \
		$(BIN)/python -m tests.benchmarks.bench_$$part || missed=1; done; exit $$missed

LOAD_SCALE ?= 1
LOAD ?=
.PHONY: load
load: setup ## Load a stack of its own by gRPC and check the invariants; LOAD_SCALE=0.1 for less
	@$(BIN)/python -m tests.load --scale $(LOAD_SCALE) $(LOAD)

.PHONY: lint
lint: setup ## Check style, types, layers, protos, the lock and the drawn docs
	@$(MAKE) $(QUIET) -j2 --keep-going --output-sync=target $(CHECKS)

# Longest first, so that two cores end together.
CHECKS := check-types check-layers check-style check-protos check-lock check-docs check-crds check-fields

.PHONY: $(CHECKS)
check-types:
	@$(BIN)/mypy
check-layers:
	@$(BIN)/lint-imports --no-logo
check-style:
	@$(BIN)/ruff format --quiet --diff .
	@$(BIN)/ruff check --quiet .
check-protos:
	@$(BIN)/buf format --diff --exit-code
	@$(BIN)/buf lint
	@$(BIN)/python -m tools.check_stubs
check-lock:
	@$(BIN)/python -m tools.check_lock
check-docs:
	@$(BIN)/python -m tools.docs --check
check-crds:
	@$(BIN)/python -m tools.crds --check
check-fields:
	@$(BIN)/python -m tools.core_fields --check

# ---- what is generated ---------------------------------------------------------------------

.PHONY: protos
protos: setup ## Generate hekla/v1 from protos/
	@$(BIN)/buf format -w
	@$(BIN)/python -m tools.check_stubs --write

.PHONY: crds
crds: setup ## Generate deploy/crds from hekla.api
	@$(BIN)/python -m tools.crds

.PHONY: fields
fields: setup ## Generate the fields of Kubernetes' own kinds from its client
	@$(BIN)/python -m tools.core_fields

.PHONY: docs
docs: setup ## Draw the pages of docs/ that come from code
	@$(BIN)/python -m tools.docs

.PHONY: fmt
fmt: setup ## Format the code and mend what can be mended
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/buf format -w

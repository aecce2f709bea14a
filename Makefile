.DEFAULT_GOAL := help
.SUFFIXES:
BIN := .venv/bin
PYTHON ?= python3
PROTOS := $(sort $(wildcard protos/hekla/v1/*.proto))
SERVICES := $(sort $(wildcard protos/hekla/v1/*_service.proto))
PROTOC := $(BIN)/python -m grpc_tools.protoc -I protos

.PHONY: help
help: ## Show this message
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/.ready ## Make .venv with everything pinned in requirements.lock

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) tools/check_python.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing what requirements.lock pins into .venv (once, about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: protos
protos: setup ## Generate hekla/v1 from protos/
	@rm -f hekla/v1/*_pb2*
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PROTOC) --python_out=. --mypy_out=quiet:. $(PROTOS)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PROTOC) --grpc_python_out=. --mypy_grpc_out=quiet,only_sync:. $(SERVICES)

.PHONY: lock
lock: setup ## Pin the newest versions in requirements.lock
	@$(BIN)/uv pip compile --quiet --group dev pyproject.toml --no-emit-index-url --generate-hashes --universal --python-version 3.11 --upgrade -o requirements.lock

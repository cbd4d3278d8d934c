# The only list of commands; CI calls these too. `make help` prints it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
MODELS := models/smollm2-135m-instruct
PIN := uv pip compile --quiet --no-emit-index-url --generate-hashes --python-version 3.11
# Images take the versions that the tests ran with.
PIN_IMAGE := $(PIN) --constraint requirements/dev.lock
PLAIN_ORT := --override requirements/edge-cpu.overrides
# Every tool runs from the virtual environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help setup models demo up test test-unit check format gen lock manifests jaeger test-jaeger bench-spine bench-router bench-forms bench-edge bench-pii embedder defaults clean simulate bench chaos fuzz soak follow-docs

help: ## Print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## Make the virtual environment with every pinned package

$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || { echo "== making .venv"; $(PYTHON) -m venv .venv; }
	@echo "== installing packages (1.5 GB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

models: $(STAMP) embedder ## Build the default models: edge 8 bit, stand-in fp32, embedder
	@tandem models build --recipe all

demo: models ## Set everything up, start the system, ask four questions
	@tandem demo

up: models ## Start the system and keep it running
	@tandem up

follow-docs: models ## Type what the documentation tells its readers to, word for word
	@python -m scripts.follow_docs

test: models ## Set everything up and run all tests
	@python -m pytest

test-unit: $(STAMP) ## Unit tests only: no port, no model
	@python -m pytest tests/unit

jaeger: $(STAMP) ## Build the Jaeger that tests read traces back from; needs Go, takes minutes once
	@nice -n 10 python -m tests.tools.jaeger_server

test-jaeger: models jaeger ## Traces of three processes, read back from a real Jaeger
	@python -m pytest tests/e2e/test_jaeger.py

check: $(STAMP) ## Formatting, lint, types, walls, protos, generated code
	@ruff format --check .
	@ruff check .
	@mypy
	@lint-imports
	@buf lint
	@buf format --diff --exit-code
	@python scripts/generate.py --check

format: $(STAMP) ## Format the code and the protos
	@ruff format . && ruff check --fix . && buf format --write

gen: $(STAMP) ## Generate gen/ from protos/
	@python scripts/generate.py

lock: ## Pin every package anew into requirements/*.lock
	@test -x $(BIN)/uv || { $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet uv; }
	@$(PIN) --universal --all-extras --group dev pyproject.toml -o requirements/dev.lock
	@$(PIN_IMAGE) --universal --extra router $(PLAIN_ORT) pyproject.toml -o requirements/router.lock
	@$(PIN_IMAGE) --universal --extra cloud pyproject.toml -o requirements/cloud.lock
	@$(PIN_IMAGE) --universal --extra edge $(PLAIN_ORT) pyproject.toml -o requirements/edge.lock
	@$(PIN_IMAGE) --universal --extra all $(PLAIN_ORT) pyproject.toml -o requirements/tools.lock
	@$(PIN_IMAGE) --python-platform x86_64-manylinux_2_28 --extra edge \
		pyproject.toml requirements/edge-cuda.in -o requirements/edge-cuda.lock
	@$(PIN) --universal requirements/manifests.in -o requirements/manifests.lock

manifests: $(STAMP) ## Build, validate and policy-check every Kubernetes overlay and image
	@python scripts/manifests.py
	@python -m pytest -q tests/unit/deploy

bench-spine: $(STAMP) ## Measure overrun and loop lag with saturated cores and stopped processes
	@python -m benchmarks.spine

bench-router: $(STAMP) ## Measure the router beside a bare gRPC hop (LITELLM=1: beside its proxy)
	@python -m benchmarks.router_overhead $(if $(LITELLM),--litellm)

bench-forms: models ## Count how many schema answers of the real model parse and validate
	@python -m benchmarks.forms

bench-edge: models ## Measure the edge engine beside llama.cpp, and its two lanes under a flood
	@python -m benchmarks.edge

bench: models ## Load four arms with 20, 50 and 100 callers (SECONDS=40 a step; by hand 900)
	@python -m benchmarks.load --seconds $(or $(SECONDS),40)

chaos: $(STAMP) ## Hit every process, store and hop with every fault (CELLS=edge,redis.killed; 25 minutes)
	@python -m tests.chaos --only "$(CELLS)"

soak: $(STAMP) ## Half load with a fault each minute; memory, files, threads flat (MINUTES=60)
	@python -m tests.chaos.soak --minutes $(or $(MINUTES),60)

fuzz: models ## Damage every input from outside for some minutes (EXAMPLES=20000 of each kind)
	@TANDEM_FUZZ_EXAMPLES=$(or $(EXAMPLES),5000) python -m pytest tests/fuzz -q --timeout 3600

simulate: $(STAMP) ## Send a million requests through scheduler and router in virtual time
	@python -m tests.simulation

bench-pii: $(STAMP) ## Measure the detector of personal data beside Presidio and argus-redact (DATA=rows)
	@python -m benchmarks.pii $(if $(DATA),--data $(DATA))

embedder: $(STAMP) ## Build the sentence embedder
	@python -m services.common.embedding.kit

defaults: $(STAMP) embedder ## Train the small models that the router ships
	@python -m evaluation.examples.defaults

clean: ## Remove what was built, but not the virtual environment
	@rm -rf build models .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

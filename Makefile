# Every target sets up .venv first, once, and again when pyproject.toml or uv.lock changes.
VENV  := .venv
PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
BENCH := $(VENV)/.ready-bench
SEEDS ?= 200
MINUTES ?= 2
ARGS  ?=

# The newest Python found that is new enough; asked only when .venv is made. A name that exists but
# does not start (a version manager's shim) is passed over.
PYTHON ?= $(shell for name in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then command -v $$name; break; fi; done)

# Install with the extra $(1): by uv, held to uv.lock, when uv works, else by pip.
define install
	@test -x $(PY) || test -n "$(PYTHON)" || \
	  { echo "Detent needs Python 3.11 or newer, and none is on PATH: install one, or name it with make PYTHON=/path/to/python" >&2; exit 1; }
	@if uv --version >/dev/null 2>&1; then \
	  test -x $(PY) || uv venv --quiet --python "$(PYTHON)" $(VENV) || exit 1; \
	  UV_PROJECT_ENVIRONMENT=$(VENV) uv sync --quiet --inexact --extra $(1); \
	else \
	  test -x $(PY) || "$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	  $(PY) -m ensurepip >/dev/null 2>&1 || true; \
	  $(PY) -m pip install --quiet --disable-pip-version-check --editable '.[$(1)]'; \
	fi
	@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench sim tamper crash chaos oracle fuzz docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything needed to work on Detent

run: $(READY) ## Show the engine at work in a short demonstration
	@$(PY) -m detent.cli demo $(ARGS)

test: $(READY) ## Run all tests in parallel (ARGS="-k name" for some)
	@$(PY) -m pytest -n auto $(ARGS)

check: $(READY) ## Check style, types, layers and sizes
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(PY) -m pytest -q tests/tidy

bench: $(BENCH) ## Measure the figures of the performance budget
	@$(PY) -m bench $(ARGS)

sim: $(READY) ## Run seeded worlds with faults (SEEDS=2000 for more)
	@$(PY) -m detent.testing.simulate --seeds $(SEEDS) $(ARGS)

tamper: $(READY) ## Harm a store in 10,000 random ways and see that each is found
	@$(PY) -m detent.testing.tamper $(ARGS)

crash: $(READY) ## Kill a real process at every failpoint and check what it left
	@$(PY) -m detent.testing.crash $(ARGS)

chaos: $(READY) ## Kill and pause schedulers of one PostgreSQL store (MINUTES=30 for longer)
	@$(PY) -m detent.testing.chaos --minutes $(MINUTES) $(ARGS)

oracle: $(READY) ## Compare the calendar with brute force at every change of every zone
	@$(PY) -m detent.testing.oracle $(ARGS)

fuzz: $(READY) ## Call the served API with data made from its description
	@$(PY) -m detent.testing.fuzz $(ARGS)

docs: $(READY) ## Generate the reference pages from the code and the results
	@$(PY) tools/generate_docs.py $(ARGS)

clean: ## Remove .venv, caches and build output
	@rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml $(wildcard uv.lock)
	$(call install,dev)

$(BENCH): $(READY)
	$(call install,bench)

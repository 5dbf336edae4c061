PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test check coverage external fix docs bench soak clean

help:  ## Show what there is to make
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

# The stamp is newer than pyproject.toml once everything it names is installed.
$(BIN)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'srvstat needs Python 3.11 or newer; name one: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(BIN)/installed  ## Build a small snapshot and print a comparison
	@$(BIN)/srvstat demo
	@echo 'For srvstat on your path: . .venv/bin/activate'

test: $(BIN)/installed  ## Run all tests but the external ones, in two processes
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: $(BIN)/installed  ## Format, lint, types, all tests, and what of the code they run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@$(MAKE) --no-print-directory test coverage external

coverage: $(BIN)/installed  ## Run the tests once more, and see that they run every branch of what answers
	$(BIN)/python -m coverage run -m pytest -q --deselect tests/test_campaigns.py
	$(BIN)/python -m coverage report

# Generators and compilers, in an environment of their own. Tests skip what is missing there.
EXTERNAL := .venv/external
$(EXTERNAL)/installed: tests/external/requirements.txt tests/external/package.json | $(BIN)/installed
	$(PYTHON) -m venv $(EXTERNAL)
	cp tests/external/package.json $(EXTERNAL)
	@$(EXTERNAL)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement tests/external/requirements.txt && \
		npm install --prefix $(EXTERNAL) --silent --no-audit --no-fund --no-package-lock \
			--fetch-timeout=30000 --fetch-retries=4 && \
		touch $@ || echo 'not all generators could be installed; the tests of the others run' >&2

external: $(EXTERNAL)/installed  ## Generate clients in other languages, and have them call the service
	$(BIN)/python -m pytest -m external

fix: $(BIN)/installed  ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(BIN)/installed  ## Write the generated docs, the README's examples and the fixtures anew
	$(BIN)/python docs/generate.py

# The peers come on top of what is installed. SIZE=20 takes three minutes, the full size up to 40.
SIZE ?= 200
$(BIN)/installed-bench: $(BIN)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@

bench: $(BIN)/installed-bench  ## Compare with other tools, on SIZE=20 or SIZE=200 servers
	$(BIN)/python -m benchmarks --size $(SIZE)

$(BIN)/installed-soak: $(BIN)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,soak]'
	@touch $@

# SEED=2 draws other cases. CAMPAIGNS=flips runs one of them.
SEED ?= 1
soak: $(BIN)/installed-soak  ## Run the campaigns in full, for hours, and keep what they found
	cd tests && ../$(BIN)/python -m campaigns --long --seed $(SEED) $(CAMPAIGNS)
	$(BIN)/python docs/generate.py

clean:  ## Remove what was set up and made
	rm -rf .venv srvstat-demo benchmarks/data .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

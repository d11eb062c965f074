# Each target sets up what it needs from a bare clone: Python 3.11+, pip and make are enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo serve-demo test lint types imports unit docs dist format lock clean reproduce bench bench-peers adapters

demo: .venv/installed
	$(BIN)/varnn demo --output report.html

# A live service with a dashboard, fed by made series with drift, shifts and bursts; Ctrl-C ends it.
serve-demo: .venv/installed
	$(BIN)/python -m varnn.service.demo

test: lint types imports unit

# A slice of the paper in about three minutes; VARNN_DATA_DIR says where the data sets are.
reproduce: .venv/installed
	$(BIN)/varnn reproduce --quick --output results

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

imports: .venv/installed
	$(BIN)/lint-imports

unit: .venv/installed
	$(BIN)/pytest

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Source archive and wheel (made from that archive), checked, and tried in new environments with extras and without.
DIST := .venv-dist/bin
dist: .venv-dist/installed
	rm -rf dist
	$(DIST)/python -m build --no-isolation
	$(DIST)/twine check --strict dist/*
	$(DIST)/check-wheel-contents dist/*.whl
	$(DIST)/python .ci/try_wheel.py

# What the default costs beside the peers that are installed; BEFORE=folder also fits the default of that checkout.
RESULTS := benchmarks/results
OF_DEFAULT := stream-default stream-command fleet backtest forecast fit-default growth-default service-load
OF_NETWORK := train score stream growth
PAGE = page $(foreach one,$(OF_DEFAULT) $(OF_NETWORK),$(RESULTS)/$(one).json) -o docs/performance.md
define bench_default
	for one in stream-default fleet backtest forecast; do $(1) -m benchmarks $$one --threads 1,2 --json $(RESULTS)/$$one.json || exit 1; done
	$(1) -m benchmarks stream-command --json $(RESULTS)/stream-command.json
	$(1) -m benchmarks fit-default $(if $(BEFORE),--before $(BEFORE)) --json $(RESULTS)/fit-default.json
	$(1) -m benchmarks growth-default --json $(RESULTS)/growth-default.json
endef
bench: .venv/installed
	$(call bench_default,$(BIN)/python)
	$(BIN)/python -m benchmarks $(PAGE)

# Against every named peer, Keras and neuralforecast included, in an environment of its own; the network alone, too.
PEERS := .venv-peers/bin
bench-peers: .venv-peers/installed
	$(call bench_default,$(PEERS)/python)
	for one in train score stream; do $(PEERS)/python -m benchmarks $$one --threads 1,2 --json $(RESULTS)/$$one.json || exit 1; done
	$(PEERS)/python -m benchmarks growth --json $(RESULTS)/growth.json
	$(PEERS)/python -m benchmarks $(PAGE)

# Adapters against the libraries they are for, at the versions pinned, in an environment of their own. What those
# libraries warn of is shown, and is no error.
ADAPTERS := .venv-adapters/bin
adapters: .venv-adapters/installed
	$(ADAPTERS)/python -m pytest -W default --dist load tests/adapters src/varnn/adapters

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-dist/installed: requirements-dist.lock
	$(PYTHON) -m venv .venv-dist
	$(DIST)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-dist.lock
	touch $@

.venv-peers/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv-peers
	$(PEERS)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock \
		tensorflow-cpu==2.21.0 neuralforecast==3.3.0
	$(PEERS)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-adapters/installed: requirements-adapters.lock pyproject.toml
	$(PYTHON) -m venv .venv-adapters
	$(ADAPTERS)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-adapters.lock
	$(ADAPTERS)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# No hashes (pip's --require-hashes): they would have to name every build of every package, for each Python and
# platform, and torch comes from another index, or a local file, in a build of its own. Versions are exact.
# The local part of a version (torch 2.13.0+cpu) names a build, not a release: pins keep the release only.
lock: .venv/installed
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9]*$$//' > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean:
	rm -rf .venv .venv-peers .venv-dist .venv-adapters dist .mypy_cache .ruff_cache .pytest_cache .hypothesis report.html site

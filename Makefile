PYTHON ?= python3
BIN := .venv/bin

# Bytecode is kept, also where Python is told not to: else each of some hundred processes compiles everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup run test unit lint e2e bench chaos hostile churn fuzz lock audit sbom docs release
.DEFAULT_GOAL := test

setup: .venv/installed

.venv/installed: pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: setup
	$(BIN)/quotaward serve --manifests examples/two-teams

# Five files at a time, four of which have a cluster to wait for (tests/sharing.py): two processors are few for more.
test: lint
	$(BIN)/python -m pytest -n 5 --dist loadfile

# The rules, by tables and by a quarter of the usual number of random worlds, without tests that are marked as slow.
unit: setup
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" tests/unit tests/properties

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.prose

# Against the scheduler of another minor version: make e2e KUBERNETES=1.36
e2e: setup
	QUOTAWARD_KUBERNETES=$(KUBERNETES) $(BIN)/python -m pytest -n 2 --dist loadfile tests/e2e

bench: setup
	$(BIN)/python -m tests.bench

# The documentation as a site, in .site; fails at a link that leads nowhere.
docs: .venv-docs/installed
	.venv-docs/bin/mkdocs build --quiet --config-file .mkdocs.yml

.venv-docs/installed: requirements-docs.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	@touch $@

# All files of a release of the last commit, in dist; needs Go once, which builds helm.
release: setup
	$(BIN)/python -m tests.release

# Known vulnerabilities of what runs in the image; asks the package index about each of them.
audit: .venv-audit/installed
	.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

# What the image holds, as CycloneDX.
sbom: .venv-audit/installed
	.venv-audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file sbom.json \
		requirements.lock

.venv-audit/installed: requirements-audit.lock
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --require-hashes -r requirements-audit.lock
	@touch $@

# Another seed each time; it is printed, and --seed N does the same again.
chaos: setup
	$(BIN)/python -m tests.chaos --minutes 15

# The same of the seed. make hostile MINUTES=3
hostile: setup
	$(BIN)/python -m tests.hostile --minutes $(or $(MINUTES),10)

churn: setup
	$(BIN)/python -m tests.churn --minutes $(or $(MINUTES),60)

# What was found to lead further is kept outside the checkout; what must not happen, too. make fuzz MINUTES=60
fuzz: .venv/fuzzing
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10)

.venv/fuzzing: requirements-fuzz.lock .venv/installed
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-fuzz.lock
	@touch $@

# Resolves every dependency anew, for all platforms and Python versions that pyproject.toml allows.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --output-file requirements.lock pyproject.toml
	uv pip compile --quiet --universal --generate-hashes --no-header --group dev --output-file requirements-dev.lock pyproject.toml
	uv pip compile --quiet --universal --generate-hashes --no-header --group pyproject.toml:audit --output-file requirements-audit.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --group pyproject.toml:docs --output-file requirements-docs.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --group pyproject.toml:fuzz --output-file requirements-fuzz.lock

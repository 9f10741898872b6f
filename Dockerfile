# The service, with only Python and the libraries that it loads: the last stage starts from scratch, so the image has no
# shell, no package manager and no pip. It has no Redis or Valkey either: set REDIS_URL.
#
#   docker build --build-arg VERSION=0.2.0 -t robots-decisions .
#
# BASE is the image to build on and to take Python's packages from: any Debian 13 image with apt. deploy/image/base.sh
# makes one without a registry, and `make check NAME=image` uses it.
ARG BASE=debian:trixie-slim

# The file system of the image: the Debian packages that it needs, unpacked.
FROM ${BASE} AS system
COPY deploy/image/system.sh /build/
RUN ["/bin/sh", "/build/system.sh", "/system"]

# A Python to install and compile with; none of it ends up in the image.
FROM ${BASE} AS python
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /build/venv
# The system's CA certificates instead of pip's own: BASE may have an additional one, for a proxy.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1

# The core as a wheel, for any processor of this architecture. No file of the service is copied here, so changes to them do not
# trigger a compilation.
FROM python AS core
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3-dev \
    && rm -rf /var/lib/apt/lists/*
COPY locks/build.txt /build/
RUN /build/venv/bin/pip install --quiet --require-hashes --only-binary :all: -r /build/build.txt
COPY core /build/core
RUN CFLAGS=-g0 /build/venv/bin/pip wheel --quiet --no-deps --no-build-isolation -w /wheel /build/core

# The packages that the service imports, pinned by hash, with all its extras, and the service.
FROM python AS service
COPY locks/service.txt /build/
COPY --from=core /wheel /wheel
RUN /build/venv/bin/pip install --quiet --require-hashes --only-binary :all: --no-compile \
        --target /srv/lib -r /build/service.txt \
    && /build/venv/bin/pip install --quiet --no-index --no-deps --no-compile --target /srv/lib /wheel/*.whl \
    && rm -rf /srv/lib/bin \
    && find /srv/lib -type d -name tests -prune -exec rm -rf {} + \
    && find /srv/lib -type f \( -name "*.pyi" -o -name "*.h" -o -name "*.a" \) -delete
COPY app /srv/app
COPY LICENSE openapi.json deploy/image/health.py deploy/image/ask.py /srv/
# Compiled now, because the root file system is read-only at run time; with unchecked hashes, so that copies with new time
# stamps do not make the files stale.
ARG REVISION=unknown
RUN echo "${REVISION}" > /srv/app/REVISION \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="robots-decisions" \
      org.opencontainers.image.description="One shared service that tells a fleet of crawlers what each robots.txt on the web permits." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=system /system/ /
COPY --from=service /srv/ /srv/
# It listens on all addresses, so it needs API_KEYS_FILE, or ALLOW_UNAUTHENTICATED=1 if only trusted clients can reach it.
ENV HOST=:: \
    PORT=8080 \
    LANG=C.UTF-8 \
    PYTHONPATH=/srv/lib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /srv
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["/usr/bin/python3", "/srv/health.py"]
ENTRYPOINT ["/usr/bin/python3", "-m", "app"]

# The service, on nothing but a Python and the libraries it loads: the last stage starts from an empty file system, so
# there is no shell in the image, no package manager and no pip. A Redis or Valkey is not in it either: set REDIS_URL.
#
#   docker build --build-arg VERSION=0.1.0 -t robots-decisions .
#
# BASE is what it is built on, and from whose packages the Python is taken: any image of Debian 12 with apt in it. Where no
# registry can be had, deploy/image/base.sh makes one; `make image-check` does so.
ARG BASE=debian:bookworm-slim

# The file system of the image: the Debian packages that are needed, unpacked.
FROM ${BASE} AS system
COPY deploy/image/system.sh /build/
RUN ["/bin/sh", "/build/system.sh", "/system"]

# A Python to install and compile with, and none of it in the image.
FROM ${BASE} AS python
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /build/venv
# The system's authorities instead of pip's own: BASE may bring one more, of a proxy on the way out.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1

# The compiled part of the core, for any processor of the kind that this is built on. No other file of the service is
# here, so a change of one compiles nothing.
FROM python AS compiled
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3-dev \
    && rm -rf /var/lib/apt/lists/*
COPY deploy/requirements-build.txt /build/
RUN /build/venv/bin/pip install --quiet --require-hashes --only-binary :all: -r /build/requirements-build.txt
WORKDIR /build
COPY setup.py /build/
COPY app/robots/_native /build/app/robots/_native
RUN venv/bin/python setup.py --quiet build_ext --build-lib /compiled \
    && find /compiled -name "*.so" -exec strip --strip-unneeded {} +

# What the service imports, by hash, and the service.
FROM python AS service
COPY deploy/requirements.txt /build/
RUN /build/venv/bin/pip install --quiet --require-hashes --only-binary :all: --no-compile \
        --target /srv/lib -r /build/requirements.txt \
    && rm -rf /srv/lib/bin \
    && find /srv/lib -type d -name tests -prune -exec rm -rf {} + \
    && find /srv/lib -type f \( -name "*.pyi" -o -name "*.h" -o -name "*.a" \) -delete
COPY app /srv/app
RUN find /srv/app/robots/_native -type f ! -name "*.py" -delete
COPY --from=compiled /compiled/app /srv/app
COPY LICENSE deploy/image/health.py /srv/
# Compiled here, because the root file system is read-only where it runs; by hash and unchecked, so that no time stamp
# that a copy changes makes the files stale.
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv

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
# All may reach it, so it starts with API_KEYS_FILE, or with ALLOW_UNAUTHENTICATED=1 where the network keeps strangers out.
ENV HOST=0.0.0.0 \
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

# syntax=docker/dockerfile:1
# The router.
#
#   docker build -f deploy/docker/router.Dockerfile -t tandem-router:0.1.0 .
#
# The base is pinned by its full tag. To pin the bytes too, ask your registry for the digest
# (`docker buildx imagetools inspect python:3.11.14-slim-bookworm`) and write `@sha256:…` behind
# the tag, in every FROM.

FROM python:3.11.14-slim-bookworm AS build
COPY requirements/router.lock /tmp/requirements.lock
# No pip in what is shipped: the builder's own installs into the other environment.
RUN python -m venv --without-pip /opt/tandem \
 && python -m pip --python /opt/tandem/bin/python install --require-hashes --no-deps \
      --no-cache-dir --disable-pip-version-check -r /tmp/requirements.lock
COPY services/__init__.py /app/services/__init__.py
COPY services/common /app/services/common
COPY services/router /app/services/router
COPY gen/tandem /app/tandem
# Compiled here: the root of a running container is read-only.
RUN /opt/tandem/bin/python -m compileall -q --invalidation-mode unchecked-hash /app /opt/tandem/lib \
 && mkdir /state

FROM python:3.11.14-slim-bookworm
COPY --from=build /opt/tandem /opt/tandem
COPY --from=build /app /app
# A new volume of Docker's takes its owner from here.
COPY --from=build --chown=10001:10001 /state /var/lib/tandem
ENV PATH=/opt/tandem/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /app
# Numeric, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 50051
# Python is process 1 and takes SIGTERM itself; no shell is between.
ENTRYPOINT ["python", "-m", "services.router.main"]
CMD ["--config", "/etc/tandem/config/router.yaml"]

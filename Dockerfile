# A live service in a container: no torch, no compiler, no root.
#
#   docker build --tag varnn .
#
# Everything is in the volume /data. The service listens on all addresses of the container, and refuses to do so
# while there is no token, so make one first; it is printed once:
#
#   docker run --rm --volume varnn:/data varnn token make me --scope admin --data /data
#   docker run --detach --publish 127.0.0.1:8000:8000 --volume varnn:/data --name varnn varnn
#
# Then upload a model (PUT /v1/models/NAME) and begin a stream (POST /v1/streams), or give one at the start:
#
#   docker run ... --volume ./house.varnn:/models/house.varnn:ro varnn \
#       serve /models/house.varnn --data /data --host 0.0.0.0
#
# Publish the port on loopback, behind a proxy that speaks TLS, or give --tls-cert and --tls-key.
# With Prometheus and Grafana beside it: examples/service/compose.yaml.

FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
RUN pip wheel --no-cache-dir --wheel-dir /wheels --constraint requirements.lock ".[serve,fast,mqtt]"

FROM python:3.11-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index /wheels/*.whl \
    && useradd --uid 10001 --create-home varnn \
    && install --directory --owner varnn --group varnn --mode 700 /data
# By number, so that Kubernetes can tell that it is not root.
USER 10001:10001
# What a step is quick by is compiled now, once, and not at every start of a container.
RUN python -m varnn.step
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["varnn"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0"]

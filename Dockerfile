FROM python:3.13-slim AS wheel
WORKDIR /src
# The tools that build the wheel are pinned like everything else, so it needs no isolated environment of its own.
COPY requirements-dev.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-dev.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY policy policy
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .

FROM python:3.13-slim AS install
RUN python -m venv --without-pip /opt/quotaward
COPY requirements.lock ./
RUN pip --python /opt/quotaward/bin/python install --no-cache-dir --require-hashes -r requirements.lock
COPY --from=wheel /wheel /wheel
RUN pip --python /opt/quotaward/bin/python install --no-cache-dir --no-deps /wheel/*.whl

FROM python:3.13-slim
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Quotaward" \
      org.opencontainers.image.description="Elastic quotas for a stock kube-scheduler" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=install /opt/quotaward /opt/quotaward
# Nothing is written at run time, so that the root file system can be read-only; bytecode was compiled on installation.
ENV PATH=/opt/quotaward/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["quotaward"]
CMD ["serve"]

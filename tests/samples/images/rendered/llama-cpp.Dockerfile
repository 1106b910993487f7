# llama.cpp with CUDA for GB10.
ARG BASE=docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04

# hadolint ignore=DL3006
FROM ${BASE} AS tools
ENV DEBIAN_FRONTEND=noninteractive
# hadolint ignore=DL3008
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    apt-get update; \
    apt-get install --yes --no-install-recommends \
        build-essential ca-certificates ccache cmake git libcurl4-openssl-dev libssl-dev python3; \
    rm -rf /var/lib/apt/lists/*

# --- the compiler, tried before anything is built with it -----------------------------------------------------------
# hadolint ignore=DL3006
FROM tools AS compile-probe
COPY compile_probe.py /opt/build/
WORKDIR /opt/tinderbox
RUN --mount=type=cache,id=compile-probe,target=/var/lib/tinderbox/probes \
    python3 /opt/build/compile_probe.py --architecture 12.1a > compile-probe.json \
    || { echo "The base image's own nvcc can not build for 12.1a: take another image.base or image.architecture." >&2; exit 1; }; \
    cat compile-probe.json

# --- what is compiled -----------------------------------------------------------------------------------------------
FROM tools AS build
WORKDIR /src
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    git clone --filter=blob:none --no-checkout https://github.com/ggml-org/llama.cpp .; \
    git checkout --detach 4c7e9893c4ca8eec35d032726d14b74fae76cff8
# The driver's library is not there while an image is built, so the linker must not insist on it.
ENV CCACHE_DIR=/root/.cache/ccache
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=ccache,target=/root/.cache/ccache \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    cmake -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/opt/llama.cpp \
        -DGGML_CUDA=ON -DLLAMA_CURL=ON -DLLAMA_BUILD_TESTS=OFF \
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined \
        -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache \
        -DCMAKE_CUDA_ARCHITECTURES=121a-real; \
    cmake --build build --config Release --parallel "${BUILD_JOBS:-1}"; \
    cmake --install build

# hadolint ignore=DL3006
FROM ${BASE}
# hadolint ignore=DL3008
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    export DEBIAN_FRONTEND=noninteractive; \
    apt-get update; \
    apt-get install --yes --no-install-recommends ca-certificates libcurl4t64 libgomp1; \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/llama.cpp /opt/llama.cpp
ENV PATH=/opt/llama.cpp/bin:$PATH \
    LD_LIBRARY_PATH=/opt/llama.cpp/lib:/usr/local/cuda/lib64
LABEL tinderbox.check='["llama-server", "--version"]' \
      tinderbox.gpus="all"
COPY --from=compile-probe /opt/tinderbox/compile-probe.json /etc/tinderbox-compile-probe.json
COPY tinderbox-image.json /etc/tinderbox-image.json
CMD ["llama-server", "--help"]

# vLLM with native MXFP4 (CUTLASS) for GB10, from three forks that belong together.
ARG BASE=nvcr.io/nvidia/pytorch:26.01-py3

# --- what is compiled with ------------------------------------------------------------------------------------------
# hadolint ignore=DL3006
FROM ${BASE} AS tools
ENV DEBIAN_FRONTEND=noninteractive \
    PIP_BREAK_SYSTEM_PACKAGES=1 \
    UV_SYSTEM_PYTHON=1 \
    UV_BREAK_SYSTEM_PACKAGES=1 \
    UV_LINK_MODE=copy
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The base's flash-attn registers the operators that vLLM registers, and computes garbage on SM121.
# hadolint ignore=DL3008
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    apt-get update; \
    apt-get install --yes --no-install-recommends ca-certificates ccache git libxcb1 ninja-build; \
    rm -rf /var/lib/apt/lists/*; \
    pip install --no-cache-dir uv==0.13.9; \
    pip uninstall --yes flash-attn
# The base's own torch stays: the index would replace its CUDA build by a CPU one.
RUN python3 -c 'import torch; print("torch==" + torch.__version__)' > /opt/overrides.txt \
    && echo 'nvidia-nvshmem-cu13<3.6' >> /opt/overrides.txt \
    && echo 'apache-tvm-ffi<0.2' >> /opt/overrides.txt \
    && echo 'fastapi[standard]>=0.115.0,<0.137.0' >> /opt/overrides.txt

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

# --- sources, each at its commit, and in a stage of its own, so that another commit rebuilds nothing of the others ------
# Without file contents of other commits, but with the history: vLLM's version is counted from its tags.
FROM tools AS flashinfer-source
WORKDIR /src
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    git clone --filter=blob:none --no-checkout https://github.com/christopherowen/flashinfer flashinfer; \
    git -C flashinfer checkout --detach f349e52496a72a00d8c4ac02c7a1e38523ff7194
# CUTLASS comes from its own fork, and the base's setuptools does not know licences in the new form.
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    git -C flashinfer submodule update --init --depth 1 3rdparty/spdlog; \
    rm -rf flashinfer/3rdparty/cutlass; \
    sed -i -e 's/^license = "Apache-2.0"$/license = { text = "Apache-2.0" }/' -e '/^license-files/d' flashinfer/pyproject.toml

FROM tools AS cutlass-source
WORKDIR /src
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    git clone --filter=blob:none --no-checkout https://github.com/christopherowen/cutlass cutlass; \
    git -C cutlass checkout --detach fede53000a962b46e05bafe0c86311778caeb380

FROM tools AS vllm-source
WORKDIR /src
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    git clone --filter=blob:none --no-checkout https://github.com/christopherowen/vllm vllm; \
    git -C vllm checkout --detach 045293d82b832229560ac4a13152a095af603b6e

# --- the three wheels of FlashInfer: its code, the kernels that come compiled, and those compiled here and not at start --
FROM flashinfer-source AS flashinfer
ENV CCACHE_DIR=/root/.cache/ccache \
    CCACHE_MAXSIZE=50G \
    CCACHE_COMPRESS=1 \
    CMAKE_C_COMPILER_LAUNCHER=ccache \
    CMAKE_CXX_COMPILER_LAUNCHER=ccache \
    CMAKE_CUDA_COMPILER_LAUNCHER=ccache \
    FLASHINFER_CUDA_ARCH_LIST=12.1f \
    TORCH_CUDA_ARCH_LIST=12.1a \
    TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv pip install --override /opt/overrides.txt nvidia-nvshmem-cu13 apache-tvm-ffi
COPY --from=cutlass-source /src/cutlass /src/flashinfer/3rdparty/cutlass
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    --mount=type=cache,id=ccache,sharing=locked,target=/root/.cache/ccache \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv build --no-build-isolation --wheel --out-dir /wheels flashinfer/.
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    --mount=type=cache,id=ccache,sharing=locked,target=/root/.cache/ccache \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv build --no-build-isolation --wheel --out-dir /wheels flashinfer/flashinfer-cubin
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    --mount=type=cache,id=ccache,sharing=locked,target=/root/.cache/ccache \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv build --no-build-isolation --wheel --out-dir /wheels flashinfer/flashinfer-jit-cache

# --- the wheel of vLLM ----------------------------------------------------------------------------------------------
FROM vllm-source AS vllm
ENV CCACHE_DIR=/root/.cache/ccache \
    CCACHE_MAXSIZE=50G \
    CCACHE_COMPRESS=1 \
    CMAKE_C_COMPILER_LAUNCHER=ccache \
    CMAKE_CXX_COMPILER_LAUNCHER=ccache \
    CMAKE_CUDA_COMPILER_LAUNCHER=ccache \
    FLASHINFER_CUDA_ARCH_LIST=12.1f \
    TORCH_CUDA_ARCH_LIST=12.1a \
    TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas
WORKDIR /src/vllm
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    --mount=type=cache,id=ccache,sharing=locked,target=/root/.cache/ccache \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    python3 use_existing_torch.py; \
    sed -i '/flashinfer/d' requirements/cuda.txt; \
    uv pip install --override /opt/overrides.txt --requirement requirements/build.txt; \
    uv build --no-build-isolation --wheel --out-dir /wheels .

# --- what runs ------------------------------------------------------------------------------------------------------
FROM tools
RUN --mount=type=secret,id=site,target=/run/secrets/site \
    --mount=type=secret,id=authorities,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=cache,id=uv,target=/root/.cache/uv \
    --mount=type=bind,from=flashinfer,source=/wheels,target=/wheels/flashinfer \
    --mount=type=bind,from=vllm,source=/wheels,target=/wheels/vllm \
    set -ae; [ ! -e /run/secrets/site ] || . /run/secrets/site; set +a; \
    export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; \
    uv pip install --override /opt/overrides.txt /wheels/*/*.whl nvidia-nvshmem-cu13 \
        fastsafetensors==0.5.0 \
        llama-benchy==0.4.0
# OpenCV and vLLM import each other in a circle; the base's triton-kernels do not fit this vLLM.
RUN pip uninstall --yes opencv-python opencv-python-headless opencv-contrib-python triton-kernels; \
    find / -xdev -path '*/dist-packages/*' '(' -name '*opencv*.pth' -o -name '*cv2*.pth' ')' -delete
ENV FLASHINFER_CUDA_ARCH_LIST=12.1f \
    TORCH_CUDA_ARCH_LIST=12.1a \
    TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas \
    VLLM_FASTSAFETENSORS_NOGDS=1
WORKDIR /srv
LABEL tinderbox.check='["python3", "-c", "import flashinfer, fastsafetensors, vllm; print(vllm.__version__)"]' \
      tinderbox.gpus="all"
COPY --from=fp4-probe /opt/tinderbox/lib /opt/tinderbox/lib
COPY --from=compile-probe /opt/tinderbox/compile-probe.json /etc/tinderbox-compile-probe.json
COPY tinderbox-image.json /etc/tinderbox-image.json
CMD ["vllm", "--help"]

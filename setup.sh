#!/bin/sh
# Makes .venv from requirements.lock. Run by every make target; does nothing when the lock has not changed.
set -eu
cd "$(dirname "$0")"
wanted=$(sha256sum requirements.lock | cut -d' ' -f1)
if [ "$(cat .venv/.lock-hash 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

say() { printf 'set-up: %s\n' "$*" >&2; }

if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    uv=.venv-uv/bin/uv
    if [ ! -x "$uv" ]; then
        if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
            if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
                say "installing python3-venv by apt"
                apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
            else
                say "python3 has no venv module: install it (Debian, Ubuntu: sudo apt-get install python3-venv) and run this again"
                exit 1
            fi
        fi
        say "installing uv beside the project (.venv-uv)"
        python3 -m venv .venv-uv
        .venv-uv/bin/pip install --quiet --disable-pip-version-check 'uv>=0.9'
    fi
fi

say "installing the locked packages into .venv"
[ -x .venv/bin/python ] || "$uv" venv --quiet --python '>=3.11' .venv
"$uv" pip sync --quiet --require-hashes --python .venv requirements.lock
# Writes bytecode for what every run imports, also where PYTHONDONTWRITEBYTECODE would make each run compile it anew.
env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c 'import pyinfra_cli.main, docker, jinja2, pydantic, rich.table, typer, yaml'
printf '%s' "$wanted" > .venv/.lock-hash.new
mv .venv/.lock-hash.new .venv/.lock-hash

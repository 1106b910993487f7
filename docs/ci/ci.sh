#!/bin/sh
# What a pipeline asks of a fleet; it changes nothing but what a gate measures:
#     sh docs/ci/ci.sh inventory/office.yaml [lint] [verify] [drift] [gate]
# Without names all four. Every one of them is run, whatever the one before it found, but a fleet file that is refused
# ends it at once. Exit status: 0, or that of the first that failed; drift: 2 a host differs, 3 one could not be looked at.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ $# -lt 1 ]; then
    echo "usage: sh docs/ci/ci.sh FLEET_FILE [lint] [verify] [drift] [gate]" >&2
    exit 1
fi
TINDERBOX_FLEET=$1
export TINDERBOX_FLEET
shift
[ $# -gt 0 ] || set -- lint verify drift gate
./setup.sh || exit 1
PATH=$PWD/.venv/bin:$PATH
reports=reports/ci
mkdir -p "$reports"
first=0

step() {
    name=$1
    shift
    echo "== $name" >&2
    "$@"
    status=$?
    echo "== $name ended with $status" >&2
    [ "$first" -ne 0 ] || first=$status
    return "$status"
}

for name in "$@"; do
    case $name in
    lint) step lint pyinfra inventory.py debug-inventory > /dev/null || exit "$first" ;;
    verify) step verify pytest tests/verify --junitxml="$reports/verify.xml" ;;
    drift) step drift python -m modules.converge --drift --json > "$reports/drift.json" ;;
    gate) step gate python -m modules.converge deploys/measure.py ;;
    *) echo "no such step: $name" >&2; exit 1 ;;
    esac
done
exit "$first"

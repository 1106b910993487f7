"""Find out, by assembling, whether the ptxas that Triton uses on this host knows an architecture.

    ptxas_probe.py --architecture 12.1f          exit status 1, with the reason, where it does not
    ptxas_probe.py --architecture 12.1f --tell   print {"path": …, "reason": …} as JSON; reason null: it does

Triton takes the ptxas that TRITON_PTXAS_PATH names, else one of its own, which need not know a GB10 (triton issue
8539). The variable is the one that a login shell has.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

VARIABLE = "TRITON_PTXAS_PATH"
# The first version of PTX that has sm_121 (seen with ptxas 13.0.88: 8.7 is refused, 8.8 is taken).
PTX_VERSION = "8.8"
TIMEOUT_S = 30


def source(architecture: str) -> str:
    """The least that ptxas takes."""
    target = f"sm_{architecture.replace('.', '')}"
    return f".version {PTX_VERSION}\n.target {target}\n.address_size 64\n.visible .entry probe() {{ ret; }}\n"


def tritons_ptxas() -> str | None:
    """The ptxas that a login shell hands to Triton; None: Triton takes its own."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    shown = subprocess.run(
        ["bash", "-lc", f'printf "%s\\n" "${VARIABLE}"'],
        env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    # A profile may print something of its own first.
    return (shown.stdout.splitlines() or [""])[-1].strip() or None


def refusal(ptxas: str, architecture: str) -> str | None:
    """Why a ptxas does not assemble for an architecture; None: it does."""
    target = f"sm_{architecture.replace('.', '')}"
    with tempfile.TemporaryDirectory(prefix="tinderbox-ptxas-") as folder:
        text, code = Path(folder) / "probe.ptx", Path(folder) / "probe.cubin"
        text.write_text(source(architecture))
        try:
            done = subprocess.run(
                [ptxas, "-arch", target, "-o", str(code), str(text)],
                capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except OSError as error:
            return f"{ptxas} can not be run: {error.strerror}"
        except subprocess.TimeoutExpired:
            return f"{ptxas} did not end within {TIMEOUT_S} s"
        if done.returncode == 0 and code.exists():
            return None
    said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in said if re.search(r"\b(fatal|error)\b", line)] or said
    return errors[0] if errors else f"{ptxas} ended with exit status {done.returncode}"


def main(arguments: list[str]) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description="Does the ptxas that Triton uses know an architecture?")
    parser.add_argument("--architecture", required=True, help="for example 12.1f")
    parser.add_argument("--tell", action="store_true", help="print what was found as JSON, and do not judge")
    wish = parser.parse_args(arguments)
    path = tritons_ptxas()
    reason = f"{VARIABLE} is not set in a login shell" if path is None else refusal(path, wish.architecture)
    if wish.tell:
        print(json.dumps({"path": path, "reason": reason}))
        return 0
    if reason is not None:
        print(
            f"Triton would not compile for {wish.architecture} on this host: {reason}. {VARIABLE} must name the ptxas "
            "of a CUDA toolkit of 13.0 or newer (/usr/local/cuda/bin/ptxas); look for another value of it in "
            "~/.profile, ~/.bash_profile, /etc/profile.d and /etc/environment",
            file=sys.stderr,
        )
        return 1
    print(f"{path} assembles for {wish.architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

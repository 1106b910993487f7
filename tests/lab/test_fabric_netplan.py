"""Debian's netplan on a lab host takes every file that is rendered for the ports of real Sparks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.fabric_lab import with_netplan
from tests.lab.lab_driver import Lab

pytestmark = pytest.mark.lab
HOST = "spark-2"
SNAPSHOTS = Path(__file__).parents[1] / "samples" / "netplan"


def test_netplan_takes_every_file_that_is_rendered(lab: Lab, tmp_path: Path) -> None:
    rendered = {path.stem: path.read_text() for path in sorted(SNAPSHOTS.glob("*.yaml"))}
    assert len(rendered) == 9
    script = ["set -e; cd /tmp; rm -rf generate"]
    for renderer in ("networkd", "NetworkManager"):
        for name, text in rendered.items():
            root = f"generate/{renderer}/{name}"
            script += [
                f"mkdir -p {root}/etc/netplan",
                f"echo 'network: {{version: 2, renderer: {renderer}}}' > {root}/etc/netplan/01-all.yaml",
                f"cat > {root}/etc/netplan/40-cx7.yaml <<'END'\n{text}END",
                f"chmod 600 {root}/etc/netplan/*; netplan generate --root-dir {root} 2>&1",
            ]
    script += [
        "cd generate",
        "grep -rE '^(MTUBytes|mtu|Address|address1|LinkLocalAddressing)=' --include '*.network' --include '*.nmc*' .",
    ]
    lab.write(HOST, "/tmp/generate.sh", "\n".join(script) + "\n")

    with with_netplan(lab, (HOST,), tmp_path):
        run = lab.ssh(HOST, "sudo sh /tmp/generate.sh; sudo rm -rf /tmp/generate /tmp/generate.sh")
    said = run.stdout.splitlines()

    for name, text in rendered.items():
        wanted = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "addresses:" in line]
        for renderer in ("networkd", "NetworkManager"):
            lines = [line.partition(":")[2] for line in said if line.startswith(f"./{renderer}/{name}/")]
            given = [line.partition("=")[2] for line in lines if line.startswith(("Address=", "address1="))]
            assert sorted(given) == sorted(wanted)
            assert sum(line in {"MTUBytes=9000", "mtu=9000"} for line in lines) == len(wanted)
            assert lines.count("LinkLocalAddressing=no") == (len(wanted) if renderer == "networkd" else 0)

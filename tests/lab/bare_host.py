"""Users of a lab host of whom there is only a password, and whom sshd and sudo treat in different ways."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.lab_driver import Lab, Run
from tests.lab.terminal import Answers, at_terminal

COMMAND = (sys.executable, "-m", "modules.bootstrap")
ROOT_PASSWORD = "of-root-h4q8"
ADMIN, PLAIN, ROOTPW, ASKING, LOCKED = "anna", "bert", "cora", "dora", "emil"
USERS = (ADMIN, PLAIN, ROOTPW, ASKING, LOCKED)
_SSHD = f"""
Match User {ADMIN},{PLAIN},{ROOTPW}
    PasswordAuthentication yes
Match User {ASKING}
    PasswordAuthentication no
    KbdInteractiveAuthentication yes
Match User {LOCKED}
    PasswordAuthentication no
    KbdInteractiveAuthentication no
"""
# Files of the lab's own sshd configuration come later in the alphabet, and the first value counts.
_SSHD_FILE = "/etc/ssh/sshd_config.d/00-bare.conf"


def password(user: str) -> str:
    return f"of-{user}-x7k2"


@dataclass
class BareHost:
    """`spark-2`, say, with these users."""

    lab: Lab
    host: str

    def make(self) -> None:
        """Bring the users to what they are before the first login."""
        lines = [f"{user}:{password(user)}" for user in USERS] + [f"root:{ROOT_PASSWORD}"]
        users = " ".join(USERS)
        self.lab.ssh(
            self.host,
            f"sudo sh -c 'set -e; rm -f /etc/sudoers.d/tinderbox-*; rm -rf /var/lib/tinderbox/undo/docker-group"
            f" /var/lib/tinderbox/undo/files/etc/sudoers.d; for u in {users}; do"
            f" pkill -KILL -u $u || true; userdel -r $u 2>/dev/null || true; useradd -m -s /bin/bash $u; done;"
            f" for u in {ADMIN} {ROOTPW} {ASKING} {LOCKED}; do usermod -aG sudo $u; done'",
        )
        self.lab.write(self.host, "/run/passwords", "\n".join(lines) + "\n")
        self.lab.write(self.host, f"/etc/sudoers.d/{ROOTPW}", f"Defaults:{ROOTPW} rootpw\n")
        self.lab.write(self.host, _SSHD_FILE, _SSHD)
        self.lab.ssh(
            self.host,
            f"sudo sh -c 'chmod 440 /etc/sudoers.d/{ROOTPW}; chpasswd < /run/passwords; rm /run/passwords;"
            " systemctl reload ssh'",
        )

    def fleet(self, user: str, name: str, settings: Mapping[str, object] | None = None, **more: Any) -> Path:
        """A fleet file that reaches the host as this user, with a key and known hosts that are not there yet."""
        for made in self.lab.layout.folder.glob(f"begin-{name}.*"):
            made.unlink()

        def change(content: dict[str, Any]) -> None:
            own = {"user": user, "key": f"begin-{name}.key", "known_hosts": f"begin-{name}.known_hosts"}
            content["ssh"] = own | dict(settings or {})
            content["hosts"] = {self.host: content["hosts"][self.host]}
            content.update(more)

        return self.lab.write_fleet(f"begin-{name}", change)

    def bootstrap(self, fleet: Path, answers: Answers, **environment: str) -> Run:
        """`make bootstrap` at a terminal, with somebody who answers."""
        return at_terminal(COMMAND, answers, environment={**self.lab.environment(fleet), **environment})

    def left(self, user: str) -> str:
        """What the first login leaves of its own: nothing, for a host that was refused."""
        listed = f"sudo sh -c 'ls /etc/sudoers.d/tinderbox-* /home/{user}/.ssh/authorized_keys* 2>/dev/null || true'"
        return self.lab.ssh(self.host, listed).stdout

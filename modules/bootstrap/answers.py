"""What a host says of itself, and what sudo says of its user. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from modules.bootstrap.refusal import RefusedError

_MARK = "tinderbox-says "
OLDEST = (3, 11)
# One round trip, in plain sh, by the user as it is let in.
QUESTIONS = f"""
say() {{ printf '{_MARK}%s %s\\n' "$1" "$2"; }}
say user "$(id -un)"; say uid "$(id -u)"
say python "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
if ! command -v sudo >/dev/null; then say sudo none
elif sudo -n true 2>/dev/null; then say sudo free
else say sudo asks; fi
"""


@dataclass(frozen=True)
class Visited:
    """`python`: version of python3, empty where there is none. `sudo`: `none`, `free` (of a password) or `asks`."""

    user: str
    uid: int
    python: str
    sudo: str

    @property
    def is_root(self) -> bool:
        """Whether the login is root's own, which needs no sudo."""
        return self.uid == 0


def visited(text: str) -> Visited:
    """Read the answers to `QUESTIONS`; a login banner may stand around them.

    Raises `RefusedError`: the login runs no commands, or its password has expired.
    """
    said = dict(line.removeprefix(_MARK).partition(" ")[::2] for line in text.splitlines() if line.startswith(_MARK))
    if {"user", "uid", "python", "sudo"} <= set(said) and said["uid"].isdigit():
        return Visited(said["user"], int(said["uid"]), said["python"].strip(), said["sudo"])
    if "assword change required" in text or "assword has expired" in text:
        raise RefusedError(
            "the password has expired, and the host wants a new one before anything else",
            "log in once with ssh and give it one, then run this again",
        )
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")
    raise RefusedError(
        f"the login runs no commands (it said: {last[:200]})", "give the user a shell, as `sudo chsh -s /bin/bash USER`"
    )


def check_python(found: Visited) -> None:
    """Raise `RefusedError` where what Tinderbox ships to hosts could not run."""
    if not found.python:
        raise RefusedError("there is no python3 on the host", "install it there: sudo apt-get install -y python3")
    if tuple(int(part) for part in found.python.split(".")) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise RefusedError(
            f"python3 is {found.python} on the host, and {wanted} is needed", "DGX OS 7 has 3.12: is it an older one?"
        )


def sudo_refusal(user: str, said: str, *, asked: int) -> RefusedError:
    """Why sudo gave no root. `said`: all that it said; `asked`: how many passwords it was given."""
    text = said.lower()
    if any(words in text for words in ("not in the sudoers file", "is not allowed to", "may not run sudo")):
        return RefusedError(
            f"user {user} may not use sudo",
            f"as an administrator of the host: sudo usermod -aG sudo {user}; or name another user: ssh: {{user: …}}",
        )
    if "must have a tty" in text:
        return RefusedError(
            "sudo wants a terminal (requiretty)",
            f"as an administrator of the host: echo 'Defaults:{user} !requiretty' | sudo tee /etc/sudoers.d/{user}-tty",
        )
    if asked:
        return RefusedError(
            f"wrong password for sudo of user {user}",
            "run this again with the right one; as secrets: ssh.password, or ssh.sudo_password where sudo has its own",
        )
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "nothing")
    return RefusedError(f"sudo did not work (it said: {last[:200]})", f"see `sudo -l` as user {user} on the host")

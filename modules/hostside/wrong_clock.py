"""A host whose clock is wrong: to it, every certificate is one of the past or of the future."""

from __future__ import annotations

import time

# OpenSSL's words, which Python, pip and curl pass on.
_NOT_VALID_NOW = ("certificate is not yet valid", "certificate has expired")


def blames_clock(said: object) -> bool:
    """Whether an error, or what a program has said, is about a certificate that is not valid now."""
    return any(words in str(said) for words in _NOT_VALID_NOW)


def remedy() -> str:
    """What is wrong then, and what to do."""
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return (
        f"its certificate is not valid at the time that this host's clock shows ({now}): set the clock (timedatectl); "
        "where that is right, the certificate itself is out of date"
    )

"""A plain TCP forward, in the place of `ssh -N -L`. Usage: tcp_forward.py PORT TARGET_PORT (both on loopback)."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading


def carry(here: socket.socket, there: socket.socket) -> None:
    """One way, until it ends."""
    with contextlib.suppress(OSError):
        while data := here.recv(1 << 16):
            there.sendall(data)
    for end in (here, there):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Until it is killed."""
    port, target = map(int, sys.argv[1:])
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            here, _ = listener.accept()
            try:
                there = socket.create_connection(("127.0.0.1", target))
            except OSError:
                here.close()
                continue
            for pair in ((here, there), (there, here)):
                threading.Thread(target=carry, args=pair, daemon=True).start()


if __name__ == "__main__":
    main()

"""A proxy on this machine that lab hosts can reach: CONNECT to whatever they ask for, by the names of the lab."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import docker

from tests.lab.lab_driver import Lab
from tests.lab.tcp_forward import carry


@dataclass
class Proxy:
    """`asked`: what it was to connect to, in order. `refuses`: with this status."""

    address: str
    port: int
    asked: list[str] = field(default_factory=list)
    refuses: int | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"


@contextmanager
def proxy(lab: Lab) -> Iterator[Proxy]:
    """While this lasts."""
    network = docker.from_env().networks.get(lab.layout.network)
    # Docker gives this machine the first address.
    gateway = str(ipaddress.ip_network(network.attrs["IPAM"]["Config"][0]["Subnet"])[1])
    names = json.loads((lab.layout.mirror_state / "names.json").read_text())
    with socket.create_server((gateway, 0)) as listener:
        found = Proxy(gateway, int(listener.getsockname()[1]))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    here, _ = listener.accept()
                    threading.Thread(target=_connect, args=(here, found, names), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _connect(here: socket.socket, proxy: Proxy, names: dict[str, str]) -> None:
    with here:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = here.recv(4096)
            if not piece:
                return
            head += piece
        method, target = head.split(b" ", 2)[:2]
        host, _, port = target.decode().rpartition(":")
        proxy.asked.append(f"{method.decode()} {target.decode()}")
        if method != b"CONNECT" or proxy.refuses is not None or host not in names:
            here.sendall(f"HTTP/1.1 {proxy.refuses or 404} No\r\nContent-Length: 0\r\n\r\n".encode())
            return
        with socket.create_connection((names[host], int(port))) as there:
            here.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=carry, args=(there, here), daemon=True)
            back.start()
            carry(here, there)
            back.join()

"""Send a packet that must not be cut through one network interface, and see whether it comes back."""

from __future__ import annotations

import os
import socket
import struct
import time

_WAIT_S = 1.0
_TRIES = 3
_DONT_FRAGMENT = (10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO of Linux; Python's socket module has no names for them


def checksum(data: bytes) -> int:
    """The Internet's checksum."""
    even = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(even) // 2}H", even))
    total = (total >> 16) + (total & 0xFFFF)
    return int(~(total + (total >> 16)) & 0xFFFF)


def ping(device: str, target: str, size: int, number: int) -> str:
    """Empty where a packet of `size` bytes came back whole by that interface; else what was seen.

    `number`: tells the answers to several at once from each other.
    """
    head, body = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, number), bytes(size - 28)
    packet = head[:2] + struct.pack("!H", checksum(head + body)) + head[4:] + body
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as echo:
        echo.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        echo.setsockopt(socket.IPPROTO_IP, *_DONT_FRAGMENT)
        echo.settimeout(_WAIT_S)
        for _ in range(_TRIES):
            try:
                echo.sendto(packet, (target, 0))
                until = time.monotonic() + _WAIT_S
                while time.monotonic() < until:
                    answer, sender = echo.recvfrom(65535)
                    if sender[0] == target and answer[20:21] == b"\0" and answer[24:28] == head[4:8]:
                        return ""
            except socket.timeout:  # noqa: UP041, another class before Python 3.10
                continue
            except OSError as error:
                return error.strerror or str(error)
    return f"no answer in {_TRIES} tries"

"""Gateways to try things on."""

from __future__ import annotations

from typing import Any

from modules.fleet.gateway import GatewayPlan, Route, Upstream
from modules.spec.gateway import Gateway

SECRETS = {"alice": "sk-alice-hidden", "bob": "sk-bob-hidden", "engine": "sk-engine-hidden"}
TEXT = Route(
    "gpt-oss", "gpt-oss-120b", "engine",
    (Upstream("spark-1", "10.0.0.11", 8000, "10.0.0.11"), Upstream("spark-2", "fd00::12", 8000, "fd00::12")),
)  # fmt: skip
SMALL = Route("small", "Qwen/Qwen3.5-4B", None, (Upstream("front", "127.0.0.1", 8001, "127.0.0.1"),))
CLIENTS = {"alice": {"key": "alice", "requests_per_minute": 60}, "bob": {"key": "bob"}}
PLANS: dict[str, GatewayPlan] = {
    "plain": GatewayPlan(Gateway(), (TEXT,)),
    "all": GatewayPlan(
        Gateway.model_validate({
            "listen": "0.0.0.0", "port": 443, "clients": CLIENTS, "balance": "prefix", "drain_s": 60,
            "tls": {"host_file": "/etc/ssl/private/front.pem"}, "metrics": {"listen": "10.0.0.10", "port": 9000},
            "limits": {"concurrent": 8, "per_host": 32, "queue_s": 30, "body_kib": 4096, "response_s": 600},
        }),
        (TEXT, SMALL),
    ),
}  # fmt: skip


def gateway(**settings: Any) -> GatewayPlan:
    """One with these settings, for one service."""
    return GatewayPlan(Gateway.model_validate(settings), (TEXT,))

"""What a host is asked for its state: by its plan. Pure."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from modules.asking.program import request
from modules.fleet import HostPlan, ServicePlan
from modules.release import layout
from modules.release.build import key_file, key_variable

# Each after those that it imports.
_MODULES = (
    "release_story",
    "engine_sample",
    "plain_http",
    "whose_process",
    "status_service",
    "status_state",
)


def status_request(plan: HostPlan) -> str:
    """What `status_state.py` reads, with its own text before it."""
    return f"{request(*_MODULES)}{json.dumps({'services': {one.name: wish(one) for one in plan.services}})}\n"


def wish(plan: ServicePlan) -> dict[str, Any]:
    """Of one service: where its API is, and in which file and variable its key. The key itself stays on its host."""
    variable = key_variable(plan)
    url = urlsplit(layout.endpoint(plan.service.listen, plan.service.port))
    return {
        "api": None if plan.is_worker else [url.hostname, url.port],
        "key": None if variable is None else [key_file(plan), variable],
    }

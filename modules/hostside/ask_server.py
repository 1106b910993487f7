"""Ask a server for what proves that it serves: its models' names, and a reply with text in it."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from modules.hostside.ask_model import GENERATE, answer, question
else:
    from ask_model import GENERATE, answer, question


class NotReady(Exception):  # noqa: N818 (a state, not an error of the program)
    """The server does not answer yet; asking again may help."""


class Hopeless(Exception):  # noqa: N818
    """Waiting longer can not help."""


@dataclass(frozen=True)
class Endpoint:
    """Where the service is asked, and under which name it must know its model."""

    url: str
    model: str
    key: str | None = None

    def ask(self, method: str, path: str, body: object = None, timeout: float = 30.0) -> tuple[int, bytes]:
        """One request; `NotReady` where no complete answer came."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise NotReady(f"{self.url}{path}: {error or type(error).__name__}") from error
        finally:
            connection.close()


def read_secret(path: Path, variable: str) -> str:
    """The value of one variable in a docker env file; `Hopeless` when it is not there."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        if name == variable:
            return value
    raise Hopeless(f"{path} has no {variable}")


def check_names(status: int, body: bytes, model: str) -> None:
    """Refuse a server that does not serve `model`: another program may hold the port."""
    if status in {401, 403}:
        raise Hopeless(f"the server refused the API key (HTTP {status})")
    if status != 200:
        raise NotReady(f"/v1/models answered HTTP {status}")
    try:
        names = [str(entry["id"]) for entry in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError) as error:
        raise Hopeless(f"what listens on this port is no OpenAI server: {body[:80]!r}") from error
    if model not in names:
        raise Hopeless(f"the server on this port serves {', '.join(names) or 'nothing'}, not {model}")


def reply_text(body: bytes) -> str:
    """The generated text of a chat completion, reasoning included; empty when there is none."""
    try:
        message = json.loads(body)["choices"][0]["message"]
        parts = [message.get(name) for name in ("content", "reasoning", "reasoning_content")]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return "".join(part for part in parts if isinstance(part, str)).strip()


def reply_tokens(body: bytes) -> bool:
    """Whether a chat completion holds a token: by its own count, where it tells one, else by its text."""
    try:
        made = json.loads(body)["usage"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        made = None
    return made > 0 if isinstance(made, int) else bool(reply_text(body))


def generate(endpoint: Endpoint, timeout: float, task: str = GENERATE) -> str:
    """Ask for a short reply, or for what else the model is for. Returns it in words, or an empty text."""
    path = "/v1/chat/completions"
    body: dict[str, object] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 64,
    }
    if task != GENERATE:
        path, body = question(task, endpoint.model)
    status, reply = endpoint.ask("POST", path, body, timeout)
    if status in {401, 403}:
        raise Hopeless(f"the server refused the API key (HTTP {status})")
    if 400 <= status < 500 and status not in {408, 429}:
        raise Hopeless(f"the server refused the request: HTTP {status}: {reply[:300].decode(errors='replace')}")
    if status != 200:
        raise NotReady(f"{path} answered HTTP {status}: {reply[:200].decode(errors='replace')}")
    return reply_text(reply) if task == GENERATE else answer(task, reply)

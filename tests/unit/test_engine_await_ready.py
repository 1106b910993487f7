"""When a server counts as ready, against a server that misbehaves as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from modules.hostside import await_ready

KEY = "sk-key"


class FakeServer(BaseHTTPRequestHandler):
    """`models`: names; `replies`: messages, the last one for ever; `key`: asked for where set."""

    models: tuple[str, ...] = ("gpt-oss-tiny",)
    replies: list[tuple[int, object]] = []  # noqa: RUF012
    key: str | None = None
    authorizations: list[str | None] = []  # noqa: RUF012

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self, status: int, document: object) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def allowed(self) -> bool:
        self.authorizations.append(self.headers["Authorization"])
        if self.key is None or self.headers["Authorization"] == f"Bearer {self.key}":
            return True
        self.answer(401, {"error": "Unauthorized"})
        return False

    def do_GET(self) -> None:
        if self.allowed():
            self.answer(200, {"data": [{"id": name} for name in self.models]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.allowed():
            status, message = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            self.answer(status, {"choices": [{"message": message}]} if status == 200 else message)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeServer]]:
    """A class whose attributes say how the server behaves."""

    class Server(FakeServer):
        replies = [(200, {"content": "hello"})]  # noqa: RUF012
        authorizations: list[str | None] = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setattr(await_ready, "PAUSE_S", 0.001)
    monkeypatch.setattr(await_ready, "journal", lambda *_, **__: LOG)
    monkeypatch.delenv("MAINPID", raising=False)
    LOG[:] = ["INFO Using CUTLASS backend"]
    Server.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield Server
    server.shutdown()
    server.server_close()


LOG: list[str] = []


def ready(fake: type[FakeServer], *options: str, timeout: str = "30") -> int:
    words = ["--service", "gpt-oss", "--url", fake.url, "--model", "gpt-oss-tiny"]  # type: ignore[attr-defined]
    return await_ready.main([*words, "--timeout", timeout, *options])


@pytest.mark.parametrize("field", ["content", "reasoning", "reasoning_content"])
def test_generated_text_is_ready(fake: type[FakeServer], field: str) -> None:
    fake.replies = [(200, {"content": None, field: "hello"})]
    assert ready(fake) == 0


def test_one_lost_reply_is_forgiven(fake: type[FakeServer]) -> None:
    fake.replies = [(200, {"content": None}), (500, {}), (200, {"content": "hello"})]
    assert ready(fake) == 0


def test_empty_replies_are_not_ready(fake: type[FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    fake.replies = [(200, {"content": None, "reasoning": ""})]
    assert ready(fake) == 1
    assert "empty content and reasoning" in capsys.readouterr().out


def test_another_program_on_the_port_is_told_at_once(
    fake: type[FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.models = ("llama-3",)
    assert ready(fake) == 1
    assert "serves llama-3, not gpt-oss-tiny" in capsys.readouterr().out


def test_nothing_on_the_port_is_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(await_ready, "PAUSE_S", 0.001)
    monkeypatch.setattr(await_ready, "journal", lambda *_, **__: [])
    words = ["--service", "x", "--url", "http://127.0.0.1:9", "--model", "m", "--timeout", "0.05"]
    assert await_ready.main(words) == 1
    assert "not ready in time" in capsys.readouterr().out


def test_a_server_that_has_ended_is_not_waited_for(
    fake: type[FakeServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAINPID", "999999999")
    assert ready(fake) == 1
    assert "the server has ended" in capsys.readouterr().out


def test_a_refused_line_ends_the_wait(fake: type[FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    LOG.append("INFO Using Marlin backend")
    assert ready(fake, "--refused-log=Using M(arlin|ARLIN)") == 1
    assert "Using Marlin backend" in capsys.readouterr().out


def test_a_wanted_line_must_be_there(fake: type[FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    assert ready(fake, "--wanted-log=Using CUTLASS") == 0
    assert ready(fake, "--wanted-log=Using CUTLASS", "--wanted-log=-dashed FLASHINFER") == 1
    assert "never said: -dashed FLASHINFER" in capsys.readouterr().out


def test_our_own_lines_are_no_log(fake: type[FakeServer]) -> None:
    LOG.append(f"{await_ready.MARK}Using Marlin backend")
    assert ready(fake, "--refused-log=Marlin") == 0


def test_the_key_comes_from_its_file(fake: type[FakeServer], tmp_path: Path) -> None:
    fake.key = KEY
    secrets = tmp_path / "gpt-oss.secret.env"
    secrets.write_text(f"OTHER=1\nVLLM_API_KEY={KEY}\n")
    assert ready(fake, "--secret-file", str(secrets), "--key-variable", "VLLM_API_KEY") == 0
    assert set(fake.authorizations) == {f"Bearer {KEY}"}


def test_a_refused_key_is_told_at_once(
    fake: type[FakeServer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.key = KEY
    secrets = tmp_path / "gpt-oss.secret.env"
    secrets.write_text("VLLM_API_KEY=wrong\n")
    assert ready(fake, "--secret-file", str(secrets), "--key-variable", "VLLM_API_KEY") == 1
    told = capsys.readouterr().out
    assert "refused the API key" in told
    assert "wrong" not in told


def test_a_request_that_the_engine_refuses_is_told(fake: type[FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    fake.replies = [(400, {"error": "no chat template"})]
    assert ready(fake) == 1
    assert "no chat template" in capsys.readouterr().out

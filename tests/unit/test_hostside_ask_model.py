"""What embeds or reranks is ready when its answer holds something, and is asked for nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from modules.hostside import ask_server, watch_service
from modules.hostside.ask_model import answer, question
from modules.release.build import build_release
from tests.unit.release_samples import service_plan, surroundings

EMBEDDING = {"data": [{"index": 0, "embedding": [0.5, -0.25, 0.0]}]}
RERANKING = {"results": [{"index": 1, "relevance_score": 0.02}, {"index": 0, "relevance_score": 0.97}]}


class Server(HTTPServer):
    """Answers each path with a fixed document; `asked` are the paths."""

    def __init__(self, replies: dict[str, object]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.asked = replies, list[str]()

    @property
    def endpoint(self) -> ask_server.Endpoint:
        return ask_server.Endpoint(f"http://127.0.0.1:{self.server_port}", "vectors", None)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Server)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.path)
        reply = self.server.replies.get(self.path)
        body = json.dumps(reply).encode()
        self.send_response(404 if reply is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({"/v1/embeddings": EMBEDDING, "/v1/rerank": RERANKING}) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("task", "path", "told"),
    [("embed", "/v1/embeddings", "a vector of 3 numbers"), ("rerank", "/v1/rerank", "scores 0.97 and 0.02")],
)
def test_a_model_is_asked_for_what_it_is_for(server: Server, task: str, path: str, told: str) -> None:
    assert ask_server.generate(server.endpoint, 5, task) == told
    assert watch_service.answers(server.endpoint, 5, task)
    assert server.asked == [path, path]


def test_a_model_that_only_embeds_is_hopeless_at_chat(server: Server) -> None:
    with pytest.raises(ask_server.Hopeless, match="HTTP 404"):
        ask_server.generate(server.endpoint, 5)


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        ("embed", {"data": [{"embedding": [0.0, 0.0]}]}),
        ("embed", {"data": []}),
        ("embed", {"error": "none"}),
        ("rerank", {"results": []}),
        ("rerank", {"results": [{"index": 0}]}),
        ("rerank", [1]),
    ],
)
def test_an_answer_without_anything_in_it_is_none(server: Server, task: str, reply: object) -> None:
    server.replies = {"/v1/embeddings": reply, "/v1/rerank": reply}

    assert answer(task, json.dumps(reply).encode()) == ""
    assert ask_server.generate(server.endpoint, 5, task) == ""
    assert not watch_service.answers(server.endpoint, 5, task)


def test_no_json_is_no_answer() -> None:
    assert answer("embed", b"<html>") == ""


def test_questions_name_the_model() -> None:
    assert question("embed", "vectors")[1]["model"] == question("rerank", "vectors")[1]["model"] == "vectors"


def test_unit_says_what_the_model_is_for_only_where_it_is_not_text() -> None:
    plain = build_release(service_plan(), surroundings())
    pooled = build_release(service_plan("vllm", "qwen3-embedding-4b"), surroundings())

    assert "--task" not in plain.unit + plain.watch
    assert "--task embed" in pooled.unit
    assert "--task embed" in pooled.watch

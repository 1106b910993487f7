"""No secret gets out of a host's logs, and nothing that tells a cause is hidden."""

from __future__ import annotations

import pytest

from modules.diagnosis import mask, mask_lines

KEY = "4f9dXq2LrT7vBn81"

SECRET = {
    "hugging face": f"token hf_{KEY}{KEY} used",
    "openai": f"client key sk-{KEY}",
    "openai project": f"key sk-proj-{KEY}_{KEY}",
    "nvidia": f"using nvapi-{KEY}{KEY}",
    "github": f"cloning with ghp_{KEY}{KEY}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{KEY}",
    "header": f"> Authorization: Bearer {KEY}",
    "header in json": f'{{"authorization": "Bearer {KEY}"}}',
    "basic login": f"Authorization: Basic {KEY}==",
    "bearer alone": f"curl -H 'X-Auth: bearer {KEY}'",
    "environment": f"VLLM_API_KEY={KEY}",
    "environment, quoted": f'HF_TOKEN="{KEY}"',
    "environment of docker": f'"Env": ["HUGGING_FACE_HUB_TOKEN={KEY}", "PATH=/usr/bin"]',
    "secret in the middle of a name": f"AWS_SECRET_ACCESS_KEY_1={KEY}",
    "password variable": f"export PGPASSWORD={KEY}",
    "yaml": f"DB_PASSWORD: {KEY}",
    "argument": f"docker run --rm image --api-key {KEY} --port 8000",
    "argument with =": f"vllm serve m --api-key={KEY}",
    "vllm's arguments": f"non-default args: {{'host': '0.0.0.0', 'api_key': ['{KEY}'], 'port': 8000}}",
    "sglang's arguments": f"server_args=ServerArgs(model_path='m', api_key='{KEY}', port=30000)",
    "json": f'{{"password": "{KEY}"}}',
    "login in a url": f"fetching https://spark:{KEY}@proxy.site:3128/x",
    "token in a url": f"GET https://cdn.hub/x?X-Amz-Signature={KEY}&Expires=3600",
    "key in a url": f"GET https://api.site/v1?api_key={KEY}",
}


@pytest.mark.parametrize("name", SECRET)
def test_secrets_are_hidden(name: str) -> None:
    shown = mask(SECRET[name])

    assert KEY not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "line",
    [
        "GPU KV cache size: 513,893 tokens",
        "KV Cache is allocated. #tokens: 6827, K size: 0.09 GB, V size: 0.09 GB",
        "non-default args: {'max_num_batched_tokens': 8192, 'tokenizer_mode': 'auto', 'api_key': None}",
        "server_args=ServerArgs(tokenizer_path='Qwen/Qwen2.5', max_total_tokens=None, ssl_keyfile=None, api_key=None)",
        "max_total_num_tokens=6827, chunked_prefill_size=8192",
        "Avg prompt throughput: 204.7 tokens/s, Avg generation throughput: 58.3 tokens/s",
        "TOKENIZERS_PARALLELISM=false MAX_TOKENS=32768",
        "special tokens: eos_token: <|return|>, pad_token='<|endoftext|>'",
        "KeyError: 'model.layers.0.mlp.experts.w13_weight'",
        "hash mismatch for remote file: computed=11ab3e, expected=446a9538cb6c",
        "HF_TOKEN_PATH=/etc/tinderbox/token",
        "reference is not a tree: 7554e4a32b15929289aa80e8bc8a4e5f6f779407",
        "NVRM: Xid (PCI:000f:01:00): 31, pid=185, name=VLLM::EngineCor",
        "http://127.0.0.1:8000/v1/models: Connection refused",
        "task-key sk-1",
    ],
)
def test_what_tells_a_cause_stays(line: str) -> None:
    assert mask(line) == line


def test_what_stands_around_a_secret_stays() -> None:
    line = mask(f"vllm serve /m --api-key {KEY} --port 8000")

    assert line == "vllm serve /m --api-key *** --port 8000"


def test_known_values_are_hidden_wherever_they_stand() -> None:
    assert mask("x=correct horse staple!", ["correct horse staple"]) == "x=***!"


def test_the_longer_of_two_known_values_goes_first() -> None:
    assert mask("abcdefgh12345", ["abcdefgh", "abcdefgh12345"]) == "***"


def test_a_short_value_is_not_searched_for() -> None:
    """It would be found in the middle of every other word."""
    assert mask("a port of 8000", ["a"]) == "a port of 8000"


def test_a_private_key_over_several_lines_becomes_one() -> None:
    lines = ["before", "-----BEGIN OPENSSH PRIVATE KEY-----", KEY, KEY, "-----END OPENSSH PRIVATE KEY-----", "after"]

    assert mask_lines(lines) == ("before", "*** (a private key)", "after")


def test_masking_twice_changes_nothing_more() -> None:
    for line in SECRET.values():
        assert mask(mask(line)) == mask(line)

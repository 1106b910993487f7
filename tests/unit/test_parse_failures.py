"""What programs say when they fail, and what the kernel saw."""

from __future__ import annotations

import pytest

from modules.facts.parse.errors import ParseError
from modules.facts.parse.git_error import parse_git_error
from modules.facts.parse.hf_error import parse_hf_error
from modules.facts.parse.kernel_log import Firmware, Xid, parse_kernel_log
from modules.facts.parse.ninja import parse_ninja_failure
from modules.facts.parse.no_space import NoSpace, parse_no_space

HINT = "\x1b[90mHint: set HF_DEBUG=1 as environment variable for full traceback.\x1b[0m\n"


@pytest.mark.parametrize(
    ("text", "kind", "repository"),
    [
        (
            "\x1b[1m\x1b[31mError: Model 'lab/nope' not found.\nIf the repo is private, ...\x1b[0m\n",
            "not found",
            "lab/nope",
        ),
        ("\x1b[31mError: Access denied. Model 'lab/gated' requires approval.\x1b[0m\n", "gated", "lab/gated"),
        ("\x1b[31mError: Revision not found in model 'lab/tiny'.\x1b[0m\n", "revision not found", "lab/tiny"),
        ("Error: [Errno 111] Connection refused\n", "unreachable", None),
        ("Error: something new\n", "refused", None),
    ],
)
def test_the_commands_words_for_each_refusal(text: str, kind: str, repository: str | None) -> None:
    error = parse_hf_error(text + HINT)
    assert (error.kind, error.repository, error.status, error.retries) == (kind, repository, None, 0)


def test_a_rate_limit_ends_in_other_words() -> None:
    url = "https://hub.example/lab/tiny/resolve/main/config.json"
    text = (
        f"HTTP Error 429 thrown while requesting HEAD {url}\nRetrying in 1s [Retry 1/5].\n"
        f"HTTP Error 429 thrown while requesting HEAD {url}\nRetrying in 2s [Retry 2/5].\n"
        f"\x1b[31mError: Local entry not found.\n\n429 Too Many Requests for url: {url}.\x1b[0m\n"
    )
    error = parse_hf_error(text)
    assert (error.kind, error.repository, error.status, error.retries) == ("rate limited", "lab/tiny", 429, 2)
    assert error.message == "Local entry not found."


def test_no_name_resolution_ends_in_the_same_words() -> None:
    url = "https://hub.example/lab/tiny/resolve/main/config.json"
    text = (
        f"'[Errno -3] Temporary failure in name resolution' thrown while requesting HEAD {url}\n"
        "Retrying in 8s [Retry 5/5].\nError: Local entry not found. [Errno -3] Temporary failure in name resolution\n"
    )
    error = parse_hf_error(text)
    assert (error.kind, error.repository, error.retries) == ("no name resolution", "lab/tiny", 5)


def test_a_traceback_tells_the_status_too() -> None:
    text = (
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-0)\n\n"
        "Cannot access gated repo for url https://hub.example/api/models/lab/gated/revision/main.\n"
        "Access to model lab/gated is restricted. You must be authenticated.\n"
    )
    error = parse_hf_error(text)
    assert (error.kind, error.repository, error.status) == ("gated", "lab/gated", 401)
    with pytest.raises(ParseError):
        parse_hf_error("Fetching 12 files: 100%\n")


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("fatal: reference is not a tree: 7554e4a\n", "missing commit", "7554e4a"),
        ("fatal: remote error: upload-pack: not our ref 7554e4a\n", "missing commit", "7554e4a"),
        ("error: pathspec 'v9' did not match any file(s) known to git\n", "missing reference", "v9"),
        ("fatal: couldn't find remote ref v9\n", "missing reference", "v9"),
        ("fatal: repository 'https://git.example/x/' not found\n", "missing repository", "https://git.example/x/"),
        (
            "fatal: unable to access 'https://git.example/x/': Could not resolve host: git.example\n",
            "unreachable",
            "https://git.example/x/",
        ),
        ("hint: something\nfatal: bad object HEAD\n", "other", "bad object HEAD"),
    ],
)
def test_a_missing_commit_and_a_missing_tag_have_other_words(text: str, kind: str, what: str) -> None:
    error = parse_git_error("Cloning into 'x'...\n" + text)
    assert (error.kind, error.what) == (kind, what)


def test_git_without_an_error_is_an_error() -> None:
    with pytest.raises(ParseError):
        parse_git_error("Already up to date.\n")


@pytest.mark.parametrize(
    ("text", "code", "killed"),
    [
        ("[2/9] Building b.o\nFAILED: [code=137] b.o \nc++ b.c\nninja: build stopped: subcommand failed.\n", 137, True),
        ("[2/9] Building b.o\nFAILED: [code=1] b.o \nb.c:1: error\n", 1, False),
        ("[2/9] Building b.o\nFAILED: b.o \nKilled\n", None, True),
        ("[2/9] Building b.o\nFAILED: b.o \nb.c:1: error: Killed by name\n", None, False),
    ],
)
def test_a_compiler_that_was_killed_says_no_word_of_it(text: str, code: int | None, killed: bool) -> None:
    failure = parse_ninja_failure(text)
    assert (failure.target, failure.code, failure.killed, failure.done, failure.total) == ("b.o", code, killed, 2, 9)


def test_a_build_that_went_well_has_no_failure() -> None:
    with pytest.raises(ParseError):
        parse_ninja_failure("[9/9] Linking x\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cp: error writing '/data/x': No space left on device\n", NoSpace("cp", "/data/x")),
        ("OSError: [Errno 28] No space left on device: '/root/.cache/x'\n", NoSpace("python", "/root/.cache/x")),
        ("OSError: [Errno 28] No space left on device\n", NoSpace("python", None)),
        (
            "failed to copy: write /var/lib/docker/tmp/x: no space left on device\n",
            NoSpace(None, "/var/lib/docker/tmp/x"),
        ),
        ("E: Write error - write (28: No space left on device)\n", NoSpace(None, None)),
    ],
)
def test_a_full_disk_in_everyones_words(text: str, found: NoSpace) -> None:
    assert parse_no_space("some line\n" + text) == found


def test_no_full_disk_is_an_error() -> None:
    with pytest.raises(ParseError):
        parse_no_space("cp: cannot stat 'x': No such file or directory\n")


def test_errors_of_the_gpu_with_and_without_a_process() -> None:
    text = (
        "Nov 03 10:00:00 spark kernel: NVRM: Xid (PCI:000f:01:00): 31, pid=4242, name=VLLM::EngineCor, Ch 8, MMU\n"
        "[  12.3] NVRM: Xid (PCI:000f:01:00): 119, Timeout after 6s of waiting for RPC\n"
        "[  13.0] NVRM: Xid (PCI:000f:01:00): 43, pid='<unknown>', name=<unknown>, Ch 00000010\n"
    )
    assert parse_kernel_log(text).xids == (
        Xid("000f:01:00", 31, 4242, "VLLM::EngineCor", "Ch 8, MMU"),
        Xid("000f:01:00", 119, None, None, "Timeout after 6s of waiting for RPC"),
        Xid("000f:01:00", 43, None, None, "Ch 00000010"),
    )


def test_what_else_the_kernel_saw() -> None:
    text = (
        "[  3.1] mlx5_core 0000:01:00.0: firmware version: 28.45.4028\n"
        "[  3.2] mlx5_core 0000:01:00.0: mlx5_pcie_event:301: Detected insufficient power on the PCIe slot (27W).\n"
        "[ 99.0] Out of memory: Killed process 4242 (cicc) total-vm:1kB\n"
        "[ 99.1] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\n"
    )
    log = parse_kernel_log(text)
    assert log.firmware == (Firmware(None, "0000:01:00.0", "28.45.4028"),)
    assert (log.slot_power_warnings, log.oom_kills, log.gpu_memory_exhausted) == (1, ((4242, "cicc"),), True)


@pytest.mark.parametrize(
    "text",
    [
        "dmesg: read kernel buffer failed: Operation not permitted\n",
        "Hint: You are currently not seeing messages from other users and the system.\n-- No entries --\n",
        "No journal files were opened due to insufficient permissions.\n",
    ],
)
def test_a_log_that_could_not_be_read_is_not_an_empty_one(text: str) -> None:
    with pytest.raises(ParseError, match="nothing was read"):
        parse_kernel_log(text)


def test_an_empty_log_is_one_without_events() -> None:
    log = parse_kernel_log("-- No entries --\n")
    assert (log.lines, log.xids, log.gpu_memory_exhausted) == (0, (), False)

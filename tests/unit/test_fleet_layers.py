"""How layers are laid over each other, and what becomes of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from modules.fleet import Fleet, load_fleet
from modules.fleet.problem import Origin
from modules.fleet.tree import Tree, find, overlay, without_nulls


def load(folder: Path, text: str) -> Fleet:
    path = folder / "fleet.yaml"
    path.write_text(dedent(text))
    return load_fleet(path)


def tree(value: Any, line: int = 1) -> Tree:
    origin = Origin(line)
    if isinstance(value, dict):
        return Tree(origin, keys={key: tree(child, line) for key, child in value.items()})
    if isinstance(value, list):
        return Tree(origin, items=tuple(tree(child, line) for child in value))
    return Tree(origin, scalar=value)


VALUES: tuple[Any, ...] = (
    {},
    {"a": 1},
    {"a": None},
    {"a": {"b": 1, "c": [1, 2]}},
    {"a": {"b": None, "d": {"e": 2}}},
    {"a": [3], "f": "text"},
    {"f": {"g": 1}},
    {"f": None, "a": {"c": [9]}},
)


def test_overlay_of_any_three_layers() -> None:
    for first, second, third in itertools.product(VALUES, repeat=3):
        merged = overlay(overlay(overlay(tree({}), tree(first)), tree(second)), tree(third)).plain()

        assert merged == expected(expected(without(first), second), third), (first, second, third)


def test_overlay_of_an_equal_or_an_empty_layer_changes_nothing() -> None:
    for first, second in itertools.product(VALUES, repeat=2):
        merged = overlay(overlay(tree({}), tree(first)), tree(second))

        assert overlay(merged, merged).plain() == merged.plain()
        assert overlay(merged, tree({})).plain() == merged.plain()


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without(child) for key, child in value.items() if child is not None}
    return value


def expected(below: Any, above: Any) -> Any:
    """The rule in the shortest words: mappings merge, null removes, everything else replaces."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return without(above)
    merged = {key: value for key, value in below.items() if key not in above}
    for key, value in above.items():
        if value is not None:
            merged[key] = expected(below[key], value) if key in below else without(value)
    return merged


def test_overlay_keeps_where_each_value_was_written() -> None:
    merged = overlay(tree({"a": {"b": 1, "c": 2}}, line=10), tree({"a": {"c": 3}}, line=20))

    assert find(merged, ("a", "b")).origin.line == 10
    assert find(merged, ("a", "c")).origin.line == 20
    assert find(merged, ("a", "none", "deeper")).rest == ("none", "deeper")


def test_without_nulls_leaves_lists_alone() -> None:
    assert without_nulls(tree({"a": [None, 1]})).plain() == {"a": [None, 1]}


def test_defaults_then_groups_in_the_hosts_order_then_the_host(tmp_path: Path) -> None:
    fleet = load(
        tmp_path,
        """\
        fleet: office
        defaults:
          weights: {workers: 2, home: /srv/default}
          network: {proxy: {no_proxy: [a, b]}}
        groups:
          first: {weights: {workers: 4}, runtime: {log_max_files: 5}}
          second: {weights: {workers: 6, home: null}, network: {proxy: {no_proxy: [c]}}}
        hosts:
          plain:
          one: {groups: [first]}
          both: {groups: [first, second]}
          turned: {groups: [second, first]}
          own: {groups: [first, second], settings: {weights: {workers: 8}, runtime: {log_max_files: null}}}
        """,
    )

    weights = {name: host.settings.weights for name, host in fleet.hosts.items()}
    assert {name: each.workers for name, each in weights.items()} == {
        "plain": 2,
        "one": 4,
        "both": 6,
        "turned": 4,
        "own": 8,
    }
    assert weights["one"].home == "/srv/default"
    assert weights["both"].home == "/var/lib/tinderbox/huggingface"
    assert fleet.hosts["both"].settings.network.proxy.no_proxy == ("c",)
    assert fleet.hosts["both"].settings.runtime.log_max_files == 5
    assert fleet.hosts["own"].settings.runtime.log_max_files == 3


def test_ssh_of_a_host_is_laid_over_the_fleets(tmp_path: Path) -> None:
    fleet = load(
        tmp_path,
        """\
        fleet: office
        ssh: {user: ubuntu, port: 2222}
        hosts:
          spark-1: {address: 10.0.0.11, ssh: {user: root}}
          spark-2:
        """,
    )

    first, second = fleet.hosts.values()
    assert (first.address, first.ssh.user, first.ssh.port) == ("10.0.0.11", "root", 2222)
    assert (second.address, second.ssh.user) == ("spark-2", "ubuntu")


def test_paths_count_from_the_fleet_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "known_hosts").write_text("")
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    (tmp_path / "print").write_text("EB693B3035CD5710E231E123A4B469963BF863CC\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    fleet = load(
        tmp_path / "inventory",
        """\
        fleet: office
        ssh: {key: ../key, known_hosts: ~/known_hosts}
        defaults:
          network:
            ca_bundle: ../ca.pem
            apt:
              cuda:
                uri: https://mirror.example.net/cuda
                key_url: https://mirror.example.net/key.asc
                fingerprint_file: ../print
        hosts: {spark-1: {}}
        """,
    )

    host = fleet.hosts["spark-1"]
    assert host.ssh.key == str(tmp_path / "key")
    assert host.ssh.known_hosts == str(tmp_path / "home" / "known_hosts")
    assert host.settings.network.ca_bundle == str(tmp_path / "ca.pem")
    cuda = host.settings.network.apt.cuda
    assert cuda is not None
    assert cuda.fingerprint == "EB693B3035CD5710E231E123A4B469963BF863CC"
    assert cuda.fingerprint_file is None


@pytest.mark.parametrize(
    ("content", "words"),
    [("no certificate", "holds no certificate in PEM form"), ("", "holds no certificate in PEM form")],
)
def test_file_without_a_certificate_is_no_bundle(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(content)

    with pytest.raises(Exception, match=words):
        load(tmp_path, "fleet: office\ndefaults: {network: {ca_bundle: ca.pem}}\nhosts: {spark-1: {}}\n")


def test_fingerprint_file_must_hold_a_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "print").write_text("eb693b30")
    text = """\
        fleet: office
        defaults:
          network:
            apt: {cuda: {uri: https://m.example/c, key_url: https://m.example/k, fingerprint_file: print}}
        hosts: {spark-1: {}}
        """

    with pytest.raises(
        Exception, match=r":4: defaults\.network\.apt\.cuda\.fingerprint_file: print holds no fingerprint"
    ):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [("580", "580"), ("580.95", "580.95"), ("1.10", "1.10"), ("007", "007"), ("'580'", "580"), ("0x10", "0x10")],
)
def test_text_that_looks_like_a_number_stays_as_written(written: str, wanted: str, tmp_path: Path) -> None:
    fleet = load(tmp_path, f"fleet: office\ndefaults: {{hardware: {{gpu: {written}}}}}\nhosts: {{spark-1: {{}}}}\n")

    assert fleet.hosts["spark-1"].settings.hardware.gpu == wanted


def test_words_that_older_yaml_took_for_booleans_are_words(tmp_path: Path) -> None:
    text = """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: llama-cpp, model: gpt-oss-120b-gguf, flags: {flash-attn: off, log-prefix: 12:30}}
        hosts: {spark-1: {}}
        """

    assert load(tmp_path, text).hosts["spark-1"].settings.services["gpt-oss"].flags == {
        "flash-attn": "off",
        "log-prefix": "12:30",
    }

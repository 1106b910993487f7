"""Names, ports and files of a lab."""

from __future__ import annotations

import io
import re
import socket
import tarfile

import pytest
import yaml

from modules.catalog import load_catalog
from modules.lab import images
from modules.lab.errors import LabError
from modules.lab.files import DEFAULT_FLEET, derive_fleet
from modules.lab.layout import Layout
from modules.lab.model.repository import COMMIT, REPOSITORY
from modules.lab.network import Addresses
from modules.lab.ports import choose_port


@pytest.mark.parametrize("name", ["lab", "h1", "my-lab-2"])
def test_names_that_docker_files_and_fleets_take(name: str) -> None:
    assert Layout.named(name).container("spark-1") == f"tinderbox-{name}-spark-1"


@pytest.mark.parametrize("name", ["", "a", "Lab", "../lab", "lab_1", "lab-", "-lab", "a" * 33])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(LabError, match="can not name a lab"):
        Layout.named(name)


def test_a_lab_of_another_checkout_is_not_ours() -> None:
    layout = Layout.named("lab")
    assert layout.made(layout.labels)
    assert not layout.made({**layout.labels, "tinderbox.lab.folder": "/elsewhere/.lab/lab"})
    assert not layout.made({**layout.labels, "tinderbox.lab": "other"})
    assert not layout.made({})


def test_the_default_labs_ports_are_fixed_and_others_avoid_what_is_taken() -> None:
    assert choose_port("other", 1, {22120, 22121}) > 22121
    with pytest.raises(LabError, match="port 22023 on"):
        choose_port("lab", 3, {22023})


def test_a_port_that_another_program_has_is_not_chosen() -> None:
    free = choose_port("other", 1, set())
    with socket.socket() as other:
        other.bind(("127.0.0.1", free))
        other.listen()
        assert choose_port("other", 1, set()) != free


def test_addresses_do_not_meet() -> None:
    addresses = Addresses.of("172.19.0.0/16")
    all_of_them = {addresses.mirror, *(addresses.host(number) for number in range(1, 65)), "172.19.0.1"}
    assert len(all_of_them) == 66


def test_the_fleet_of_a_lab_is_the_default_one_with_its_own_hosts() -> None:
    fleet = yaml.safe_load(DEFAULT_FLEET.read_text())
    derived = derive_fleet(fleet, "other", {"spark-1": 22130, "spark-2": 22131})
    assert derived["fleet"] == "other"
    assert [host["ssh"]["port"] for host in derived["hosts"].values()] == [22130, 22131]
    assert derived["ssh"]["key"] == "id_ed25519"
    assert derived["defaults"]["network"]["ca_bundle"] == "ca.pem"
    assert derived["defaults"]["services"] == fleet["defaults"]["services"]
    assert "../.lab" not in yaml.safe_dump(derived)


def test_the_default_fleet_names_the_files_and_the_port_of_the_default_lab() -> None:
    fleet = yaml.safe_load(DEFAULT_FLEET.read_text())
    layout = Layout.named("lab")
    assert (DEFAULT_FLEET.parent / fleet["ssh"]["key"]).resolve() == layout.key
    assert (DEFAULT_FLEET.parent / fleet["ssh"]["known_hosts"]).resolve() == layout.known_hosts
    assert (DEFAULT_FLEET.parent / fleet["defaults"]["network"]["ca_bundle"]).resolve() == layout.ca
    assert fleet["hosts"]["spark-1"]["ssh"]["port"] == 22021


def test_the_catalog_pins_the_commit_of_the_labs_model() -> None:
    model = load_catalog().models["lab-gpt-oss-tiny"]
    assert (model.repository, model.revision) == (REPOSITORY, COMMIT)


def test_the_context_of_the_host_image_is_the_same_every_time_and_has_its_programs() -> None:
    context = images.build_context()
    assert context == images.build_context()
    with tarfile.open(fileobj=io.BytesIO(context)) as archive:
        modes = {entry.name: entry.mode for entry in archive}
    assert modes["files/usr/local/lib/tinderbox-lab/set-up"] == 0o755
    assert modes["files/etc/dgx-release"] == 0o644
    assert all(re.fullmatch(r"[\w./+-]+", name) for name in modes)

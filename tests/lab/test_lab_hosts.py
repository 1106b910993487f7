"""A lab host is what it stands for: a machine with systemd, sshd, apt and an inner dockerd, and an outside world."""

from __future__ import annotations

import hashlib

import pytest

from tests.lab.lab_driver import Lab

pytestmark = pytest.mark.lab
HOST = "spark-2"
BASE = "registry.lab:5000/python:3.11-slim-bookworm"


@pytest.fixture(scope="module")
def trusting(lab: Lab) -> Lab:
    """A host that knows the lab's CA, as the site role leaves it, in the one place where each test can see it."""
    lab.write(HOST, "/usr/local/share/ca-certificates/lab-test.crt", lab.layout.ca.read_text())
    lab.ssh(HOST, "sudo update-ca-certificates")
    lab.ssh(HOST, "sudo mkdir -p /etc/docker/certs.d/registry.lab:5000")
    lab.write(HOST, "/etc/docker/certs.d/registry.lab:5000/ca.crt", lab.layout.ca.read_text())
    return lab


def test_systemd_runs_and_no_unit_has_failed(lab: Lab) -> None:
    assert lab.ssh(HOST, "systemctl is-system-running").stdout.strip() == "running"
    assert lab.ssh(HOST, "systemctl --failed --no-legend").stdout == ""


def test_the_user_gets_in_by_key_only_and_may_do_all(lab: Lab) -> None:
    assert lab.ssh(HOST, "whoami; sudo whoami").stdout.split() == ["spark", "root"]
    port = lab.layout.ssh_config.read_text().split(f"Host {HOST}\n")[1].split("Port ")[1].split()[0]
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    without = ["ssh", "-F", "/dev/null", "-i", "/dev/null", *options, "-p", port, "spark@127.0.0.1", "true"]
    assert "Permission denied (publickey)" in lab.tinderbox(without).stderr


def test_a_host_key_that_changed_is_refused(lab: Lab) -> None:
    other = lab.layout.folder / "known_hosts-of-another"
    other.write_text(
        "".join(line.replace("AAAA", "AAAB", 1) + "\n" for line in lab.layout.known_hosts.read_text().splitlines())
    )
    argv = ["ssh", "-F", str(lab.layout.ssh_config), "-o", f"UserKnownHostsFile={other}", HOST, "true"]
    assert lab.tinderbox(argv).rc == 255


def test_the_gpu_says_that_it_is_simulated_and_shows_what_a_test_wants(lab: Lab) -> None:
    asked = "nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader"
    assert lab.ssh(HOST, asked).stdout.strip() == "NVIDIA GB10 (simulated), 580.142, [N/A]"
    with lab.gpu(HOST, driver_version="590.44", **{"clocks.current.sm": 611}):
        figures = "nvidia-smi --query-gpu=driver_version,clocks.sm --format=csv,noheader,nounits"
        assert lab.ssh(HOST, figures).stdout.strip() == "590.44, 611"
    assert "580.142" in lab.ssh(HOST, "nvidia-smi").stdout


def test_hosts_reach_each_other_and_no_other_name(lab: Lab) -> None:
    assert lab.ssh(HOST, "getent hosts spark-1 hub.lab | wc -l").stdout.strip() == "2"
    assert lab.ssh(HOST, "getent hosts example.com", check=False).rc == 2


def test_the_mirror_is_trusted_only_by_who_knows_the_labs_ca(trusting: Lab) -> None:
    assert trusting.ssh(HOST, "curl -sS https://hub.lab/api/models/tinderbox-lab/gpt-oss-tiny").json["gated"] is False
    refused = trusting.ssh(HOST, "curl -sS --cacert /dev/null --capath /nowhere https://hub.lab/", check=False)
    assert refused.rc != 0


def test_faults_reach_the_host_and_requests_are_written_down(trusting: Lab) -> None:
    before = len(trusting.requests())
    url = "https://encodings.lab/o200k_base.tiktoken"
    with trusting.faults({"host": "encodings.lab", "status": 503, "body": "<html>"}):
        assert trusting.ssh(HOST, f"curl -s -w '%{{http_code}}' {url}").stdout == "<html>503"
    with trusting.faults({"host": "encodings.lab", "cut_after": 1000}):
        assert trusting.ssh(HOST, f"curl -s -o /dev/null {url}", check=False).rc != 0
    assert trusting.ssh(HOST, f"curl -s {url} | wc -c").stdout.strip() == "3613922"
    asked = [each for each in trusting.requests(before) if each["host"] == "encodings.lab"]
    assert [(each["status"], each["fault"]) for each in asked] == [(503, True), (200, True), (200, False)]


def sources(lab: Lab, key: str) -> str:
    """apt options that read the lab's repository only, checked against one key."""
    text = (
        f"deb [signed-by={key}] https://apt.lab/cuda ./\ndeb [signed-by={key}] https://apt.lab/container-toolkit ./\n"
    )
    lab.ssh(HOST, "sudo mkdir -p /tmp/apt")
    lab.write(HOST, "/tmp/apt/lab.list", text)
    return "-o Dir::Etc::SourceList=/tmp/apt/lab.list -o Dir::Etc::SourceParts=/dev/null -o APT::Update::Error-Mode=any"


def test_the_repositories_are_signed_by_the_labs_key_and_by_no_other(trusting: Lab) -> None:
    trusting.ssh(HOST, "curl -sS -o /tmp/lab.asc https://apt.lab/key.asc")
    assert trusting.ssh(HOST, f"sudo apt-get {sources(trusting, '/tmp/lab.asc')} update").rc == 0
    foreign = "/usr/share/keyrings/debian-archive-keyring.gpg"
    refused = trusting.ssh(HOST, f"sudo apt-get {sources(trusting, foreign)} update", check=False)
    assert refused.rc != 0
    assert "NO_PUBKEY" in refused.text


def test_the_toolkits_nvcc_compiles_fp4_for_the_gb10_and_not_for_plain_12_1(trusting: Lab) -> None:
    trusting.ssh(HOST, "curl -sS -o /tmp/lab.asc https://apt.lab/key.asc")
    apt = f"sudo DEBIAN_FRONTEND=noninteractive apt-get {sources(trusting, '/tmp/lab.asc')}"
    trusting.ssh(HOST, f"{apt} -qq update && {apt} -qq install -y cuda-toolkit-13-0=13.0.2-1")
    trusting.write(HOST, "/tmp/fp4.cu", FP4)
    nvcc = "/usr/local/cuda/bin/nvcc -gencode arch=compute_{0},code=sm_{0} -c /tmp/fp4.cu -o /tmp/fp4.o"
    trusting.ssh(HOST, f"{nvcc.format('121f')} && /usr/local/cuda/bin/cuobjdump --dump-elf /tmp/fp4.o")
    plain = trusting.ssh(HOST, nvcc.format("121"), check=False)
    assert "not supported on .target 'sm_121'" in plain.text


FP4 = """
__global__ void convert(unsigned short *out, float a, float b) {
    unsigned short packed;
    asm volatile("{.reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; cvt.u16.u8 %0, t;}"
                 : "=h"(packed) : "f"(a), "f"(b));
    *out = packed;
}
"""


def test_containers_and_builds_on_a_host_reach_the_outside_world(trusting: Lab) -> None:
    trusting.ssh(HOST, f"sudo docker pull -q {BASE}")
    trusted = "-v /etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro"
    program = "import urllib.request as u; print(len(u.urlopen('https://encodings.lab/o200k_base.tiktoken').read()))"
    run = trusting.ssh(HOST, f'sudo docker run --rm {trusted} {BASE} python3 -c "{program}"')
    assert run.stdout.strip() == "3613922"


def test_the_base_image_has_the_digest_that_the_registry_tells(trusting: Lab) -> None:
    manifest = "https://registry.lab:5000/v2/python/manifests/3.11-slim-bookworm"
    body = trusting.ssh(HOST, f"curl -sS {manifest}").stdout
    trusting.ssh(HOST, f"sudo docker pull -q {BASE}")
    digests = trusting.ssh(HOST, f"sudo docker inspect -f '{{{{.RepoDigests}}}}' {BASE}").stdout
    assert hashlib.sha256(body.encode()).hexdigest() in digests


def test_a_restarted_host_keeps_its_port_its_key_its_files_and_its_images(trusting: Lab) -> None:
    trusting.ssh(HOST, f"sudo docker pull -q {BASE}; echo kept > kept")
    before = trusting.ssh(HOST, "cat /proc/sys/kernel/random/boot_id; stat -c %Y /proc/1").stdout
    trusting.restart(HOST)
    assert trusting.ssh(HOST, "cat /proc/sys/kernel/random/boot_id; stat -c %Y /proc/1").stdout != before
    assert trusting.ssh(HOST, "cat kept").stdout == "kept\n"
    assert trusting.ssh(HOST, f"sudo docker run --rm {BASE} python3 -c 'print(6 * 7)'").stdout == "42\n"
    assert trusting.ssh(HOST, "systemctl is-system-running").stdout == "running\n"
    assert trusting.ssh(HOST, "getent hosts hub.lab").rc == 0

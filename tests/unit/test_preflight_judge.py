"""What preflight makes of a machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modules.facts.machine import machine_state
from modules.fleet import HostPlan
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.settings import HostSettings
from roles.preflight.finding import Finding, Severity, blocking
from roles.preflight.judge import judge
from roles.preflight.space import models_asked
from tests.unit.fabric_samples import fabric
from tests.unit.preflight_machine import COMMIT, GIB, HOME, TAG, answer, disk, gpu, plan

SIMULATED: dict[str, Any] = {"simulated": True, "gpu": "NVIDIA GB10 (simulated)", "memory_gib": 8.0}
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
MODEL = f"openai/gpt-oss-120b@{COMMIT}"


def findings(wanted: HostPlan | None = None, **changes: Any) -> list[Finding]:
    return judge(machine_state(answer(**changes)), plan() if wanted is None else wanted, Lock())


def only(found: list[Finding], severity: Severity = Severity.BLOCKED) -> Finding:
    (one,) = found
    assert one.severity is severity
    return one


def test_a_good_spark_has_no_finding() -> None:
    assert findings() == []


def test_every_blocking_finding_is_told_at_once_and_first() -> None:
    found = findings(kernel="7.0.0-1019-nvidia", gpu=[gpu(driver="590.48.01")], reboot_required=True, machine="x86_64")
    assert [finding.what for finding in found] == ["architecture", "kernel", "driver", "reboot"]
    assert [finding.what for finding in blocking(found)] == ["architecture", "kernel", "driver"]


def test_a_host_without_python_is_told_so() -> None:
    found = only(judge(machine_state(["not installed"]), plan(), Lock()))
    assert str(found) == (
        "python3: not installed; wanted: python3 3.10 or newer. What it costs: nothing can be looked at or done. "
        "What to do: install it on the host: `sudo apt-get install -y python3`"
    )
    broken = only(
        judge(machine_state(["SyntaxError: future feature annotations is not defined", "Python 3.6.9"]), plan(), Lock())
    )
    assert "Python 3.6.9" in broken.measured


def test_an_old_python() -> None:
    assert only(findings(python="3.9.18")).measured == "3.9.18"
    assert findings(python="3.10.0") == []


def test_sudo_that_asks_for_a_password() -> None:
    found = only(findings(root=False, user="anna"))
    assert found.measured == "user anna can not use sudo without a password"
    assert "/etc/sudoers.d/anna" in found.remedy


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 5090", "NVIDIA GB10 (simulated)", "NVIDIA GB100"])
def test_a_gpu_that_is_not_the_wanted_one(name: str) -> None:
    found = only(findings(gpu=[gpu(name=name)]))
    assert (found.what, found.measured, found.wanted) == ("GPU", name, "NVIDIA GB10 (settings.hardware.gpu)")


@pytest.mark.parametrize(
    ("samples", "what"),
    [
        ([None], "nvidia-smi is not installed"),
        ([{"status": 9, "output": FAILED}], "could not answer"),
        ([{"status": 0, "output": "name, driver_version\n"}], "0 GPUs"),
        ([{"status": 124, "output": "no answer in 20 s"}], "no CSV header"),
    ],
)  # fmt: skip
def test_a_gpu_that_does_not_answer(samples: list[Any], what: str) -> None:
    found = only(findings(gpu=samples))
    assert what in found.measured
    assert "restart the host" in found.remedy


def test_driver_590_is_refused_with_its_reason() -> None:
    found = only(findings(gpu=[gpu(driver="590.48.01")]))
    assert found.measured == "590.48.01, with which engines deadlock while they capture CUDA graphs on GB10"
    assert found.wanted == "580 (settings.hardware.driver)"
    assert "nvidia-driver-580-open" in found.remedy


@pytest.mark.parametrize(
    ("wanted", "driver", "good"),
    [
        ("580", "580.95.05", True),
        ("580", "5800.1", False),
        ("580", "570.124.06", False),
        ("580.142", "580.142", True),
        ("580.142", "580.159.03", False),
        ("590", "590.48.01", True),
    ],
)
def test_drivers_by_major_version_or_prefix(wanted: str, driver: str, good: bool) -> None:
    assert (findings(plan(driver=wanted), gpu=[gpu(driver=driver)]) == []) is good


@pytest.mark.parametrize(
    ("kernel", "arguments", "good"),
    [
        ("6.17.0-1008-nvidia", "", False),
        ("6.17.0-10081-nvidia", "", True),
        ("6.17.0-1029-nvidia", "", True),
        ("6.14.0-1015-nvidia", "", True),
        ("7.0.0-1019-nvidia", "quiet", False),
        ("7.0.0-1019-nvidia", "quiet kho=off", True),
        ("7.1.0-1001-nvidia", "", True),
    ],
)
def test_kernels_that_are_known_to_be_bad(kernel: str, arguments: str, good: bool) -> None:
    found = findings(kernel=kernel, files={"/proc/cmdline": f"ro {arguments}\n"})
    assert [finding.what for finding in found] == ([] if good else ["kernel"])


def with_fabric(wanted: HostPlan) -> HostPlan:
    return replace(wanted, settings=wanted.settings.model_copy(update={"fabric": fabric("direct")}))


def test_a_kernel_that_stage_fabric_puts_right_stops_nobody() -> None:
    found = only(findings(with_fabric(plan()), kernel="7.0.0-1019-nvidia"), Severity.SLOW)
    assert found.remedy == "restart the host after this run: stage fabric sets it"


def test_ports_that_are_configured_without_a_fabric_are_told_with_the_way_to_undo_it() -> None:
    found = only(findings(fabric=True), Severity.NOTE)
    assert found.remedy == "`pyinfra inventory.py deploys/fabric.py -y` undoes it"
    assert findings(with_fabric(plan()), fabric=True) == []


@pytest.mark.parametrize(
    ("system", "dgx", "good"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"\n', None, True),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', None, False),
        ('ID=debian\nVERSION_ID="12"\n', None, False),
        ('ID=dgxos\nVERSION_ID="7"\n', 'DGX_NAME="DGX Spark"\nDGX_SWBUILD_VERSION="7.2.3"\n', True),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', 'DGX_NAME="DGX Station"\nDGX_SWBUILD_VERSION="6.1.0"\n', False),
    ],
)
def test_operating_systems(system: str, dgx: str | None, good: bool) -> None:
    found = findings(files={"/etc/os-release": system, "/etc/dgx-release": dgx})
    assert [finding.what for finding in found] == ([] if good else ["operating system"])


def test_an_odd_dgx_release_is_noted_and_stops_nothing() -> None:
    found = only(findings(files={"/etc/dgx-release": "DGX Spark\n"}), Severity.NOTE)
    assert "/etc/dgx-release: line 1" in found.measured


def test_too_little_memory_is_told_with_both_figures() -> None:
    found = only(findings(plan(memory_gib=120.5)))
    assert (found.measured, found.wanted) == ("119.6 GiB", "at least 120.5 GiB (settings.hardware.memory_gib)")


def test_space_is_told_with_every_part() -> None:
    found = only(findings(disks={path: disk(100) for path in ("/", "/var/lib/docker", HOME)}))
    assert found.what == "disk space on /"
    assert found.measured == "100.0 GiB free"
    assert found.wanted == (
        f"106.0 GiB (61.0 for the weights of openai/gpt-oss-120b + 25.0 for image {TAG} + 20.0 in reserve)"
    )
    assert found.remedy.startswith("make 6.0 GiB free")


def test_a_file_system_that_fills_while_it_is_looked_at_is_told_once() -> None:
    assert only(findings(disks={"/": disk(100.2), "/var/lib/docker": disk(100.1), HOME: disk(100)})).what.endswith(" /")


@pytest.mark.parametrize(("free", "good"), [(106.0, True), (105.9, False)])
def test_space_that_just_fits(free: float, good: bool) -> None:
    assert (findings(disks={path: disk(free) for path in ("/", "/var/lib/docker", HOME)}) == []) is good


def test_each_file_system_needs_only_what_goes_to_it() -> None:
    split = {"/": disk(1), "/var/lib/docker": disk(46), HOME: disk(80, mount="/data", device=2)}
    root, data = findings(disks=split | {"/var/lib/docker": disk(1)})
    assert (root.what, data.what) == ("disk space on /", "disk space on /data")
    assert root.wanted == f"45.0 GiB (25.0 for image {TAG} + 20.0 in reserve)"
    assert data.wanted == "81.0 GiB (61.0 for the weights of openai/gpt-oss-120b + 20.0 in reserve)"


def test_what_is_there_needs_no_space_again() -> None:
    small = {path: disk(50) for path in ("/", "/var/lib/docker", HOME)}
    half = {MODEL: {"snapshot": 30 * GIB, "pieces": 26 * GIB}}
    assert findings(disks=small, models=half) == []
    assert only(findings(disks=small, models={MODEL: {"snapshot": 30 * GIB, "pieces": 0}})).measured == "50.0 GiB free"


def test_a_host_that_has_everything_may_be_full() -> None:
    found = findings(
        disks={path: disk(1) for path in ("/", "/var/lib/docker", HOME)},
        models={MODEL: {"snapshot": int(60.5 * GIB), "pieces": 0}},
        images={"status": 0, "output": f"{TAG.replace(':', ' ')} <none>\n"},
    )
    assert found == []


def test_an_image_of_another_content_is_not_the_wanted_one() -> None:
    small = {path: disk(90) for path in ("/", "/var/lib/docker", HOME)}
    older = f"{TAG.partition(':')[0]} 0123456789ab <none>\n"
    assert only(findings(disks=small, images={"status": 0, "output": older})).what == "disk space on /"


@pytest.mark.parametrize(("digest", "good"), [("sha256:" + "1" * 64, True), ("sha256:" + "2" * 64, False)])
def test_a_pulled_image_is_there_by_its_digest_only(digest: str, good: bool) -> None:
    recipe = Recipe(reference="a/b:c", digest="sha256:" + "1" * 64, size_gib=25, source="test")
    small = {path: disk(90) for path in ("/", "/var/lib/docker", HOME)}
    found = findings(plan(recipe), disks=small, images={"status": 0, "output": f"a/b c {digest}\n"})
    assert (found == []) is good


@pytest.mark.parametrize(
    ("mhz", "watts", "use", "severity"),
    [
        ("611 MHz", "16 W", 96, Severity.BLOCKED),
        ("611 MHz", "[N/A]", 96, Severity.BLOCKED),
        ("2411 MHz", "18 W", 95, Severity.SLOW),
        ("2411 MHz", "42 W", 96, None),
        ("2411 MHz", "100 W", 96, None),
        ("208 MHz", "4 W", 0, None),
        ("208 MHz", "4 W", 89, None),
        ("[N/A]", "[N/A]", 96, None),
    ],
)
def test_clock_power_and_use_together_tell_a_stuck_unit(
    mhz: str, watts: str, use: int, severity: Severity | None
) -> None:
    found = findings(gpu=[gpu(mhz=mhz, watts=watts, use=use)] * 3)
    assert [finding.severity for finding in found] == ([] if severity is None else [severity])
    assert all("unplug its power supply for 60 s" in finding.remedy for finding in found)


def test_one_low_sample_between_requests_is_no_stuck_unit() -> None:
    assert findings(gpu=[gpu(mhz="611 MHz", watts="16 W", use=96), gpu(watts="60 W", use=96), gpu(use=3)]) == []


def test_others_on_the_gpu_are_named_and_our_own_are_not() -> None:
    rows = ("pid, process_name, used_gpu_memory [MiB]", "10, VLLM::EngineCore, 71680 MiB", "11, ollama, 20480 MiB")
    apps = "\n".join((*rows, "12, python3, [N/A]"))
    found = findings(apps={"status": 0, "output": apps}, containers={"10": "tinderbox-gpt-oss", "12": "jupyter"})
    assert [finding.severity for finding in found] == [Severity.SLOW, Severity.SLOW]
    assert found[0].measured == "ollama (pid 11) holds 20.0 GiB of GPU memory"
    assert found[1].measured == "python3 in container jupyter (pid 12) holds an unknown amount of GPU memory"
    assert "it is left alone" in found[0].remedy


def test_a_lab_host_may_be_of_another_kind_and_is_called_simulated() -> None:
    found = findings(
        plan(**SIMULATED),
        machine="x86_64",
        kernel="6.17.0-1008-generic",
        files={"/etc/os-release": "ID=debian\nVERSION_ID=12\n"},
        gpu=[gpu(name="NVIDIA GB10 (simulated)")],
    )
    assert only(found, Severity.NOTE).measured == (
        "NVIDIA GB10 (simulated): what is measured here says nothing about a DGX Spark"
    )


def test_a_real_machine_is_never_taken_for_a_lab_host() -> None:
    found = only(findings(plan(**SIMULATED)))
    assert (found.what, found.wanted) == ("GPU", "a name with (simulated)")


def test_a_login_banner_before_the_document_does_not_matter() -> None:
    assert judge(machine_state(["Welcome to DGX Spark", *answer()]), plan(), Lock()) == []


def test_the_fact_is_asked_for_every_model_at_its_revision() -> None:
    assert models_asked(plan()) == {MODEL: (f"{HOME}/hub/models--openai--gpt-oss-120b", COMMIT, None)}


def test_a_lab_host_that_simulates_another_gpu_is_refused() -> None:
    found = only(findings(plan(**SIMULATED), gpu=[gpu(name="NVIDIA H100 (simulated)")]))
    assert (found.what, found.measured) == ("GPU", "NVIDIA H100 (simulated)")
    assert found.wanted == "NVIDIA GB10 (simulated) (settings.hardware.gpu)"


OPEN_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (dvs-builder@U22)\n"
REFUSED = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"files": {"/proc/driver/nvidia/version": OPEN_MODULE}, "driver_library": "libnvidia-ml.so.580.126.09"},
            "the loaded driver is 580.95.05, and its libraries are 580.126.09",
        ),
        ({"gpu": [{"status": 18, "output": REFUSED}]}, "the loaded driver has another version than its libraries"),
    ],
)
def test_a_driver_that_was_upgraded_under_its_module_stops_the_host_and_not_what_serves(
    changes: dict[str, Any], told: str
) -> None:
    found = only(findings(**changes))
    assert (found.what, found.measured.startswith(told)) == ("reboot", True)
    assert "sudo reboot" in found.remedy


def test_module_and_libraries_of_one_version_are_no_finding() -> None:
    files = {"/proc/driver/nvidia/version": OPEN_MODULE}
    assert findings(files=files, driver_library="libnvidia-ml.so.580.95.05") == []


@pytest.mark.parametrize(
    ("installed", "newest"),
    [
        ([], None),
        (["6.17.0-1029-nvidia"], None),
        (["6.17.0-1029-nvidia", "6.17.0-1031-nvidia", "6.17.0-1030-nvidia"], "6.17.0-1031-nvidia"),
        (["6.17.0-999-nvidia"], None),
        # Of another kind: nobody knows whether it is meant to be booted.
        (["7.0.0-1019-nvidia-64k", "6.18.0-2-generic"], None),
        (["old", "6.17.0-1031-nvidia"], "6.17.0-1031-nvidia"),
    ],
)
def test_a_kernel_that_waits_for_a_restart(installed: list[str], newest: str | None) -> None:
    found = findings(kernels=installed)
    if newest is None:
        assert found == []
    else:
        assert only(found, Severity.NOTE).measured == f"kernel {newest} is installed, and 6.17.0-1029-nvidia runs"


def test_what_waits_for_a_restart_is_told_by_name() -> None:
    packages = "linux-image-6.17.0-1031-nvidia\nlibc6\nlibc6\n"
    found = only(findings(reboot_required=True, files={"/run/reboot-required.pkgs": packages}), Severity.NOTE)
    assert (
        found.measured == "an installed update waits for a restart of this host (linux-image-6.17.0-1031-nvidia, libc6)"
    )


def two_services(**flags: Any) -> HostPlan:
    """As `plan`, with a smaller model beside it."""
    alone = plan()
    small = {"engine": "vllm", "model": "gpt-oss-20b", "port": 8001, "flags": flags, "priority": -1}
    large = {"engine": "vllm", "model": "gpt-oss-120b", "flags": {"gpu-memory-utilization": 0.65}}
    settings = HostSettings.model_validate({"services": {"small": small, "gpt-oss": large}})
    service = replace(alone.services[0], name="small", model=alone.services[0].model)
    return replace(alone, settings=settings, services=(*alone.services, service))


def test_services_that_do_not_fit_together_are_told_before_anything_is_fetched() -> None:
    found = only(findings(two_services(**{"gpu-memory-utilization": 0.4})))
    assert found.what == "memory for service small"
    assert "the system keeps 8.00 GiB; beside gpt-oss" in found.measured
    assert "gpu-memory-utilization: 0.15; or have it on another host" in found.remedy
    assert findings(two_services(**{"gpu-memory-utilization": 0.15})) == []

"""The operating system's settings that the fleet file asks for."""

from __future__ import annotations

from tests.verify.conftest import Spark

_ADVICE = "run deploys/system.py"


def _shown(spark: Spark, unit: str, name: str) -> str:
    return spark.root(f"systemctl show --property {name} --value {unit}").strip()


def test_ssh_and_who_is_logged_in_keep_their_memory(spark: Spark) -> None:
    """As systemd has it in force, for ssh and for the slice around it."""
    if not spark.plan.settings.system.protect_ssh:
        return
    for unit, least in (("ssh.service", 192 << 20), ("system.slice", 192 << 20), ("user.slice", 4 << 30)):
        kept = _shown(spark, unit, "MemoryMin")
        assert kept == str(least), f"{spark.name}: {unit} keeps {kept} bytes, wanted {least}; {_ADVICE}"


def test_earlyoom_runs_by_our_settings(spark: Spark) -> None:
    """It would end an engine before it ends ssh."""
    if not spark.plan.settings.system.earlyoom:
        return
    words = _shown(spark, "earlyoom.service", "ExecStart")
    assert _shown(spark, "earlyoom.service", "ActiveState") == "active", (
        f"{spark.name}: earlyoom does not run; {_ADVICE}"
    )
    assert "--prefer" in words, f"{spark.name}: earlyoom runs by other settings: {words}; {_ADVICE}"
    assert "llama-server" in words, f"{spark.name}: earlyoom runs by other settings: {words}; {_ADVICE}"


def test_the_kernel_swaps_as_wished(spark: Spark) -> None:
    """In force now; the next boot is the file's matter."""
    wanted = spark.plan.settings.system.swappiness
    now = spark.root("cat /proc/sys/vm/swappiness").strip()
    assert wanted is None or now == str(wanted), f"{spark.name}: vm.swappiness is {now}, wanted {wanted}; {_ADVICE}"


def test_the_clocks_are_capped(spark: Spark) -> None:
    """By our unit, which does so at each boot."""
    cap = spark.plan.settings.system.clock_cap_mhz
    if cap is None:
        return
    state = _shown(spark, "tinderbox-clocks.service", "ActiveState")
    assert state == "active", f"{spark.name}: tinderbox-clocks.service is {state}; {_ADVICE}"
    assert f",{cap} " in _shown(spark, "tinderbox-clocks.service", "ExecStart"), f"{spark.name}: another cap; {_ADVICE}"


def test_a_boot_starts_no_desktop(spark: Spark) -> None:
    """Where the fleet file wants none."""
    if spark.plan.settings.system.desktop is not False:
        return
    target = spark.root("systemctl get-default").strip()
    assert target == "multi-user.target", f"{spark.name}: a boot ends in {target}; {_ADVICE}"

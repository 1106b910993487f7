"""What a system says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.df import Filesystem, parse_df
from modules.facts.parse.dgx_release import Update, parse_dgx_release
from modules.facts.parse.errors import ParseError
from modules.facts.parse.free import parse_free, parse_free_all
from modules.facts.parse.lscpu import CpuModel, parse_lscpu
from modules.facts.parse.meminfo import Meminfo, parse_meminfo
from modules.facts.parse.os_release import OsRelease, parse_os_release
from modules.facts.parse.torch_env import parse_capability_warning, parse_torch_env

SAMPLES = Path(__file__).parents[1] / "samples"
GIB = 2**30


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_an_os_release_with_and_without_quotes() -> None:
    assert parse_os_release(sample("os-release-ubuntu")) == OsRelease(
        "ubuntu", "24.04", "Ubuntu 24.04.3 LTS", ("debian",)
    )
    assert parse_os_release("ID=arch\nNAME='Arch Linux'\n") == OsRelease("arch", None, "Arch Linux", ())


@pytest.mark.parametrize("text", ["", 'NAME="Ubuntu"\n', "ID=ubuntu\nnonsense\n", 'ID="ubuntu\n'])
def test_an_os_release_without_an_id_or_with_nonsense_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_os_release(text)


def test_of_repeated_updates_the_last_is_current_and_dates_may_be_in_any_language() -> None:
    release = parse_dgx_release(sample("dgx-release"))
    assert (release.shipped, release.version, release.serial) == ("7.2.3", "7.5.0", None)
    assert [update.version for update in release.updates] == ["7.3.1", "7.4.0", "7.5.0"]
    assert release.updates[0] == Update("7.3.1", "Mi 19. Nov 17:05:30 CET 2025")


def test_a_release_without_quotes_and_updates() -> None:
    release = parse_dgx_release(sample("dgx-release-unquoted"))
    assert (release.name, release.pretty_name) == ("ThinkStation PGX", "Lenovo ThinkStation PGX")
    assert (release.version, release.serial, release.updates) == ("7.2.3", "PF0ABCDE", ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        'DGX_SERIAL_NUMBER="1"\n',
        'DGX_NAME="DGX Spark\n',
        'DGX_NAME="DGX Spark"\nDGX_OTA_DATE="today"\n',
        'DGX_NAME="DGX Spark"\nDGX_OTA_VERSION=""\n',
        "DGX Spark\n",
    ],
)
def test_a_release_that_is_broken_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_dgx_release(text)


def test_meminfo_in_bytes() -> None:
    assert parse_meminfo(sample("meminfo")) == Meminfo(
        total=125444812 * 1024,
        free=108003120 * 1024,
        available=121267904 * 1024,
        swap_total=16777212 * 1024,
        swap_free=16433356 * 1024,
    )


@pytest.mark.parametrize("text", ["", "MemTotal:  12 kB\n", "MemTotal: many kB\n"])
def test_meminfo_that_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_meminfo(text)


def test_free_with_decimal_commas() -> None:
    free = parse_free(sample("free-comma.txt"))
    assert (free.total, free.used, free.shared) == (119 * GIB, round(4.9 * GIB), 12 * 2**20)
    assert (free.available, free.swap_total, free.swap_used) == (114 * GIB, 15 * GIB, 0)


def test_free_in_bytes_with_a_header_that_lost_its_place() -> None:
    text = "total used free shared buff/cache available\nMem: 100 20 30 4 50 60\nSwap: 7 0 7\n"
    assert parse_free(text).available == 60


def test_two_tables_are_two_hosts_and_never_one() -> None:
    text = sample("free-comma.txt")
    assert len(parse_free_all(text + text)) == 2
    with pytest.raises(ParseError, match="expected one table, got 2"):
        parse_free(text + text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mem: 1 2 3 4 5 6\nSwap: 1 2 3\n",
        "total used free shared buff/cache available\nMem: 1 2 3 4 5 6\n",
        "total used free shared buff/cache available\nMem: 1 2 3 4 5\nSwap: 1 2 3\n",
        "total used free shared buff/cache available\nSwap: 1 2 3\n",
        "total used free shared buff/cache available\nMem: 1 2 3 4 5 lots\nSwap: 1 2 3\n",
    ],
)
def test_free_that_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_free_all(text)


def test_df_in_blocks_with_a_wrapped_row_and_a_blank_in_a_mount_point() -> None:
    root, share, shm = parse_df(sample("df-wrapped.txt"))
    assert root == Filesystem("/dev/nvme0n1p2", 3844565800 * 1024, 912345678 * 1024, 2736886912 * 1024, 26, "/")
    assert (share.source, share.available, share.used_pct) == ("//nas.example/models/a-very-long-share-name", 0, 100)
    assert share.mount == "/mnt/my models"
    assert shm.used_pct == 0


@pytest.mark.parametrize(
    ("unit", "factor"), [("1B-blocks", 1), ("1K-blocks", 1024), ("1024-blocks", 1024), ("1M-blocks", 2**20)]
)
def test_df_in_other_blocks(unit: str, factor: int) -> None:
    text = f"Filesystem {unit} Used Available Use% Mounted on\n/dev/sda1 100 40 60 40% /\n"
    assert parse_df(text)[0].size == 100 * factor


def test_df_for_people() -> None:
    text = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p2  3.6T  870G  2.6T  26% /\n"
    assert parse_df(text)[0].used == 870 * GIB


@pytest.mark.parametrize(
    "text",
    [
        "",
        "df: /nope: No such file or directory\n",
        "Filesystem 1K-blocks Used Available Use% Mounted on\n",
        "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 40\n",
        "Filesystem 1K-blocks Used Available Use% Mounted on\n//a-long-name\n",
    ],
)
def test_df_that_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_df(text)


def test_both_kinds_of_cores_each_with_its_own_clocks() -> None:
    cpu = parse_lscpu(sample("lscpu.txt"))
    assert (cpu.architecture, cpu.cpus) == ("aarch64", 20)
    assert cpu.models == (
        CpuModel("Cortex-X925", 10, 1, 3900.0, 1378.0, 112.0),
        CpuModel("Cortex-A725", 10, 1, 2808.0, 338.0, 99.0),
    )
    with pytest.raises(ParseError):
        parse_lscpu("Architecture: aarch64\nCPU(s): 20\n")


def test_what_torch_collected_and_what_it_could_not() -> None:
    env = parse_torch_env(sample("torch-collect-env.txt"))
    assert (env.torch, env.built_for_cuda, env.cuda_runtime, env.driver) == ("2.11.0+cu130", "13.0", None, "580.142")
    assert env.gpus == ("NVIDIA GB10", "NVIDIA GB10")
    assert (env.python, env.cuda_available) == ("3.12.3", True)
    assert env.packages == {"numpy": "2.2.6", "torch": "2.11.0+cu130"}
    assert [model.name for model in env.cpu.models] == ["Cortex-X925", "Cortex-A725"]


def test_a_torch_report_that_is_cut_off_is_an_error() -> None:
    text = sample("torch-collect-env.txt").partition("Versions of relevant")[0]
    with pytest.raises(ParseError, match="cut off"):
        parse_torch_env(text)
    with pytest.raises(ParseError, match="no Nvidia driver version"):
        parse_torch_env(sample("torch-collect-env.txt").replace("Nvidia driver version: 580.142\n", ""))


def test_the_warning_about_a_capability() -> None:
    text = (
        "UserWarning: \n    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n"
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n    (8.0) - (12.0)\n"
    )
    warning = parse_capability_warning(text)
    assert (warning.gpu, warning.capability, warning.oldest, warning.newest) == ("NVIDIA GB10", "12.1", "8.0", "12.0")
    with pytest.raises(ParseError):
        parse_capability_warning("UserWarning: something else\n")

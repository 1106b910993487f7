"""Looking into an image, with a docker that runs programs on this machine, and a cuobjdump that prints samples."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.facts.attestation import attestation_file
from modules.spec.attestation import Attestation

# As the program imports them on a host, so that what is patched here is what it uses.
if TYPE_CHECKING:
    from modules.hostside import attest_image, gpu_libraries, image_compiler
    from modules.hostside.progress import Progress
else:
    import attest_image
    import gpu_libraries
    import image_compiler
    from progress import Progress

SAMPLES = Path(__file__).parents[1] / "samples"
# A container is a folder here; `docker exec` runs what it is told without one.
DOCKER = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "version":
    print(json.dumps({{"Client": {{"Version": "27.0.0"}}, "Server": {{"Version": "27.0.0"}}}}))
elif words[:2] == ["image", "inspect"]:
    if words[2] == "absent:1":
        sys.exit("no such image")
    print(json.dumps([{{"Id": "sha256:1", "Config": {{"Labels": {{"tinderbox.gpus": "all"}}}}}}]))
elif words[0] == "exec":
    sys.exit(subprocess.run(words[2:]).returncode)
"""
CUOBJDUMP = """#!/bin/sh
variant() {{ cat "$1"; }}
echo "$@" >> {log}
for last; do :; done
case "$1" in
  --version) echo 'Cuda compilation tools, release 13.2, V13.2.51' ;;
  --list-elf) cat {samples}/cuobjdump-list-elf-$(variant "$2").txt 2>/dev/null ;;
  --dump-elf-symbols)
    case $(variant "$2") in
      none) echo "cuobjdump info    : File '$2' does not contain device code"; exit 255 ;;
      endless) cat {samples}/cuobjdump-dump-sass-121f.txt ;;
      mixed) cat {samples}/cuobjdump-symbols-mixed.txt ;;
      cut) cat {samples}/cuobjdump-dump-sass-121.txt; sleep 1; kill -TERM 0 ;;  # as `timeout` ends its own group
      *) cat {samples}/cuobjdump-dump-sass-$(variant "$2").txt ;;
    esac ;;
  --dump-sass)
    case $(variant "$last") in
      mixed) case "$*" in *--function*) cat {samples}/cuobjdump-dump-sass-121f.txt ;; esac ;;
      endless) cat {samples}/cuobjdump-dump-sass-121f.txt; while echo '  Function : next'; do sleep 0.1; done ;;
      *) cat {samples}/cuobjdump-dump-sass-$(variant "$last").txt ;;
    esac ;;
esac
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The image's own files; a library's content says of what kind it is."""
    program(tmp_path / "bin/docker", DOCKER.format(python=sys.executable, log=str(tmp_path / "calls")))
    program(tmp_path / "cuda/cuobjdump", CUOBJDUMP.format(samples=SAMPLES, log=tmp_path / "dumps"))
    program(tmp_path / "cuda/nvdisasm", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu_libraries, "_FOLDERS", (str(tmp_path / "nowhere"), str(tmp_path / "cuda")))
    monkeypatch.setattr(image_compiler, "NVCC", str(tmp_path / "toolkit/bin/nvcc"))
    monkeypatch.setattr(image_compiler, "KEPT_INSIDE", str(tmp_path / "kept inside"))
    monkeypatch.setattr(image_compiler, "TOLD", str(tmp_path / "told.json"))
    (tmp_path / "image").mkdir()
    return tmp_path / "image"


def library(image: Path, name: str, variant: str) -> str:
    path = image / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(variant)
    return str(path)


def attest(image: Path, budget_s: float = 60, **asked: Any) -> Attestation:
    nothing: dict[str, Any] = {
        "architecture": "12.1f", "libraries": [], "fp4_libraries": [], "modules": [], "help": [], "choices": {},
    }  # fmt: skip
    words = ["x:1", "--ask", json.dumps(nothing | asked), "--budget", str(budget_s), "--state", str(image.parent)]
    answer = attest_image.attest(attest_image.parse(words), Progress(image))
    return Attestation.model_validate_json(json.dumps(answer))


def calls(image: Path) -> list[list[str]]:
    return [json.loads(line) for line in (image.parent / "calls").read_text().splitlines()]


def test_libraries_are_found_read_and_searched(image: Path) -> None:
    probe = library(image, "lib/a/libtinderbox_fp4_probe.so", "121f")
    plain = library(image, "lib/plain.so", "121")
    none = library(image, "lib/none.so", "none")
    library(image, "lib/unasked.txt", "121")

    seen = attest(image, fp4_libraries=[f"{image}/*fp4*.so", f"{image}/gone/*.so"], libraries=[f"{image}/lib/*.so"])

    found = {of.path: of for of in seen.libraries}
    assert set(found) == {probe, plain, none}
    assert seen.libraries[0].path == probe
    assert found[probe].listed == ("sm_121",)
    assert found[probe].machine == {"sm_121f": 2}
    assert found[probe].searched
    assert {target: of.opcode for target, of in found[probe].fp4.items()} == {
        "sm_121f": "OMMA.SF.16864.F32.E2M1.E2M1.E8"
    }
    assert found[plain].machine == {"sm_121": 2}
    assert not found[plain].searched
    assert (found[none].machine, found[none].trouble) == ({}, None)
    assert seen.unmatched == (f"{image}/gone/*.so",)
    assert seen.trouble == {}
    assert seen.tool is not None
    assert (seen.tool.origin, seen.tool.version) == ("image", "13.2.51")


def test_a_library_for_plain_121_has_no_fp4(image: Path) -> None:
    library(image, "a.so", "121")

    (found,) = attest(image, fp4_libraries=[f"{image}/*.so"]).libraries

    assert (found.listed, found.machine, found.searched, found.fp4) == (("sm_121",), {"sm_121": 2}, True, {})


def test_the_search_ends_with_the_first_evidence(image: Path) -> None:
    """The stand-in would go on printing for ever, and its container is started anew to end it."""
    library(image, "a.so", "endless")

    (found,) = attest(image, budget_s=600, fp4_libraries=[f"{image}/*.so"]).libraries

    assert "sm_121f" in found.fp4
    assert found.trouble is None
    assert [words[0] for words in calls(image)][-2:] == ["restart", "rm"]


def test_fp4_for_another_architecture_does_not_end_the_search(image: Path) -> None:
    library(image, "a.so", "121a")

    (found,) = attest(image, fp4_libraries=[f"{image}/*.so"]).libraries

    assert set(found.fp4) == {"sm_121a"}
    assert all(words[0] != "restart" for words in calls(image))


def test_kernels_whose_names_tell_of_fp4_are_looked_at_first(image: Path) -> None:
    path = library(image, "a.so", "mixed")

    (found,) = attest(image, fp4_libraries=[f"{image}/*.so"]).libraries

    assert set(found.fp4) == {"sm_121f"}
    dumps = [line for line in (image.parent / "dumps").read_text().splitlines() if line.startswith("--dump-sass")]
    assert dumps == [f"--dump-sass -arch sm_121 --function tinderbox_fp4_probe {path}"]


def test_only_code_for_a_gb10_is_disassembled(image: Path) -> None:
    path = library(image, "a.so", "121")

    attest(image, fp4_libraries=[f"{image}/*.so"])

    dumps = [line for line in (image.parent / "dumps").read_text().splitlines() if line.startswith("--dump-sass")]
    assert dumps == [f"--dump-sass -arch sm_121 {path}"]


def test_what_was_cut_off_is_told_from_what_was_read(image: Path) -> None:
    library(image, "1.so", "121f")
    library(image, "2.so", "cut")
    library(image, "3.so", "121f")

    first, second, third = attest(image, libraries=[f"{image}/*.so"]).libraries

    assert (first.machine, first.trouble) == ({"sm_121f": 2}, None)
    assert second.machine == {"sm_121": 2}
    assert "not read to its end" in (second.trouble or "")
    assert third.machine == {}
    assert "not read to its end" in (third.trouble or "")


def test_without_cuobjdump_the_rest_is_still_seen(image: Path) -> None:
    (image.parent / "cuda/nvdisasm").unlink()
    library(image, "a.so", "121f")

    seen = attest(image, libraries=[f"{image}/*.so"], modules=["json"])

    assert "run deploys/cuda.py" in seen.trouble["libraries"]
    assert seen.modules["json"].error is None


def test_modules_are_imported_and_values_asked_by_the_images_python(image: Path) -> None:
    seen = attest(
        image,
        modules=["json", "no_such_module"],
        choices={"reasoning-parser": "string:digits.upper", "tool-call-parser": "string:no_such_name"},
    )

    assert seen.modules["json"].version == "2.0.9"
    assert "ModuleNotFoundError" in (seen.modules["no_such_module"].error or "")
    assert seen.choices == {"reasoning-parser": tuple("0123456789")}
    assert "AttributeError" in seen.trouble["choices of tool-call-parser"]


def test_flags_are_asked_of_the_images_help(image: Path) -> None:
    seen = attest(
        image, help=["cat", str(SAMPLES / "vllm-serve-help.txt")], choices={"tool-call-parser": "string:digits.upper"}
    )

    assert seen.flags is not None
    assert "kv-cache-dtype" in seen.flags
    assert seen.choices["kv-cache-dtype"] == ("auto", "bfloat16", "fp8")
    assert seen.choices["tool-call-parser"] == tuple("0123456789")


@pytest.mark.parametrize("command", [["false"], ["no-such-program", "--help"], ["echo", "no flags"]])
def test_a_help_that_is_none_is_told(image: Path, command: list[str]) -> None:
    seen = attest(image, help=command)

    assert seen.flags is None
    assert command[0] in seen.trouble["help"]


def test_the_container_sees_no_network_and_is_taken_away(image: Path) -> None:
    attest(image)

    run = next(words for words in calls(image) if words[0] == "run")
    name = run[run.index("--name") + 1]
    assert run[run.index("--network") + 1] == "none"
    assert run[run.index("--gpus") + 1] == "all"
    assert calls(image)[-1] == ["rm", "--force", name]


def test_the_answer_is_kept_where_the_fact_looks_for_it(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = "nvcr.io/nvidia/vllm@sha256:12"
    asked: dict[str, Any] = {
        "architecture": None,
        "libraries": [],
        "fp4_libraries": [],
        "modules": [],
        "help": [],
        "choices": {},
    }
    monkeypatch.setattr(
        "sys.argv", ["attest_image.py", reference, "--ask", json.dumps(asked), "--state", str(tmp_path / "kept")]
    )

    assert attest_image.main() == 0

    kept = tmp_path / "kept/attestations" / Path(attestation_file(reference)).name
    assert Attestation.model_validate_json(kept.read_text()).reference == reference
    assert json.loads(capsys.readouterr().out) == json.loads(kept.read_text())


def test_an_image_that_is_not_there_is_an_error(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["attest_image.py", "absent:1", "--ask", "{}", "--state", str(tmp_path / "kept")])

    assert attest_image.main() == 1

    assert "there is no image absent:1 on this host" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


# The compile probe's own program, tried by the image's python3 on an nvcc that refuses what it is told to refuse.
NVCC = """#!/bin/sh
echo "$*" >> {log}
for last; do :; done
if grep -q -e '{refused}' "$last"; then echo "ptxas x, line 3; error   : '{refused}' not supported" >&2; exit 255; fi
"""


def nvcc(image: Path, refused: str) -> Path:
    return program(Path(image_compiler.NVCC), NVCC.format(log=image / "compiled", refused=refused))


def compiled(image: Path) -> int:
    log = image / "compiled"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_what_a_build_left_of_its_trial_is_taken(image: Path) -> None:
    nvcc(image, "nothing")
    features = {"mma": {"compiles": True, "wanted": True, "reason": None}}
    told = {"architecture": "12.1f", "toolkit": "abc", "identity": "x", "features": features}
    Path(image_compiler.TOLD).write_text(json.dumps(told))

    seen = attest(image)

    assert seen.compiler is not None
    assert (seen.compiler.origin, seen.compiler.toolkit) == ("build", "abc")
    assert compiled(image) == 0


def test_an_images_own_compiler_is_tried_once_by_its_hash(image: Path) -> None:
    nvcc(image, "tcgen05.alloc")

    first = attest(image)
    assert first.compiler is not None
    shutil.rmtree(image_compiler.KEPT_INSIDE)  # with its container
    second = attest(image)

    assert first.compiler.origin == "image"
    assert first.compiler.lacking == {}
    assert {name for name, of in first.compiler.features.items() if not of.compiles} == {"tcgen05.alloc"}
    assert second.compiler == first.compiler
    assert compiled(image) == len(first.compiler.features)


def test_a_compiler_that_lacks_a_feature_is_told_and_tried_again(image: Path) -> None:
    nvcc(image, "kind::mxf4\\.block_scale")

    first, second = attest(image), attest(image)

    assert first.compiler is not None
    assert list(first.compiler.lacking) == ["mma.kind::mxf4.block_scale.scale_vec::2X.m16n8k64"]
    assert compiled(image) == 2 * len(first.compiler.features)
    assert second.compiler == first.compiler


def test_an_image_without_a_compiler_has_none(image: Path) -> None:
    seen = attest(image)

    assert (seen.compiler, seen.trouble) == (None, {})


def test_an_answer_of_a_build_that_is_none_is_trouble(image: Path) -> None:
    Path(image_compiler.TOLD).write_text('{"features": ')

    assert "gave no answer of the compile probe" in attest(image).trouble["compiler"]


def test_the_ptxas_of_an_image_is_tried_for_the_gpu(image: Path) -> None:
    good = program(image / "good", '#!/bin/sh\n[ "$1 $2" = "-arch sm_121f" ] && grep -q "target sm_121f" "$5"\n')
    old = program(
        image / "old", "#!/bin/sh\necho \"ptxas fatal   : Value '$2' is not defined for option 'gpu-name'\"; exit 1\n"
    )

    seen = attest(image, ptxas=[str(good), str(old), str(image / "gone")])

    assert seen.ptxas[str(good)] is None
    assert "Value 'sm_121f' is not defined" in (seen.ptxas[str(old)] or "")
    assert "gone" in (seen.ptxas[str(image / "gone")] or "")


def test_nothing_is_compiled_for_an_image_without_a_gpu(image: Path) -> None:
    nvcc(image, "nothing")

    assert attest(image, architecture=None).compiler is None
    assert compiled(image) == 0

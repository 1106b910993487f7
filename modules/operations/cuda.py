"""The CUDA toolkit's settings on a host, and the proof that its compiler has native FP4."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation

from modules.facts.cuda import PROBE, PTXAS_PROBE, CompileProbe, ProbedFeature, PtxasProbe, TritonPtxas
from modules.facts.files import FileStates
from modules.facts.survey import Question
from modules.operations.differences import files_differ
from modules.operations.managed_files import ManagedFile, is_settled, settle
from modules.operations.require import unreadable

CUDA_HOME = "/usr/local/cuda"
PROFILE = ManagedFile(
    "/etc/profile.d/tinderbox-cuda.sh",
    "# CUDA for login shells. Triton's own ptxas does not know every architecture that this one does.\n"
    f'case ":$PATH:" in *:{CUDA_HOME}/bin:*) ;; *) PATH={CUDA_HOME}/bin:$PATH ;; esac\n'
    f"TRITON_PTXAS_PATH={CUDA_HOME}/bin/ptxas\n"
    "export PATH TRITON_PTXAS_PATH\n",
)
PROFILE_THERE = Question(FileStates, {"paths": [PROFILE.path]})


def compile_probe_there(architecture: str) -> Question[Mapping[str, ProbedFeature]]:
    """What the compile probe has kept."""
    return Question(CompileProbe, {"architecture": architecture})


def triton_ptxas_there(architecture: str) -> Question[TritonPtxas]:
    """What Triton's ptxas assembles."""
    return Question(PtxasProbe, {"architecture": architecture})


def has_passed(answer: Mapping[str, ProbedFeature]) -> bool:
    """Whether every wanted feature was seen to compile."""
    wanted = [feature for feature in answer.values() if feature.wanted]
    return bool(wanted) and all(feature.reason is None for feature in wanted)


@operation()
def profile_settled() -> Generator[StringCommand, None, None]:
    """Give login shells the toolkit."""
    found = PROFILE_THERE.of(host)
    if found is None:
        yield from unreadable(PROFILE.path)
    elif is_settled(PROFILE, found[PROFILE.path]):
        host.noop(f"{PROFILE.path} is in place")
    else:
        files_differ([PROFILE], found)
        yield from settle([PROFILE])


@operation()
def compile_probe_passed(architecture: str) -> Generator[StringCommand, None, None]:
    """Fail this host unless its nvcc compiles every native FP4 feature for the architecture.

    The answer is kept on the host for as long as the compiler stays the same.

    + architecture: for example 12.1f
    """
    answer = compile_probe_there(architecture).of(host)
    if answer is None:
        yield from unreadable("the compile probe's answer")
    elif has_passed(answer):
        host.noop(f"nvcc has every wanted FP4 feature for {architecture}")
    else:
        yield StringCommand("python3", PROBE, "--architecture", QuoteString(architecture))


@operation()
def triton_ptxas_passed(architecture: str) -> Generator[StringCommand, None, None]:
    """Fail this host unless the ptxas that Triton uses in a login shell assembles for the architecture.

    + architecture: for example 12.1f
    """
    found = triton_ptxas_there(architecture).of(host)
    if found is None:
        yield from unreadable("the ptxas that Triton uses")
    elif found.reason is None:
        host.noop(f"{found.path} assembles for {architecture}")
    else:
        yield StringCommand("python3", PTXAS_PROBE, "--architecture", QuoteString(architecture))

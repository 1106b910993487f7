"""Packages from signed repositories, at the version that the fleet file names."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Generator

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.apt import AptPackage, AptVersions, PackageState
from modules.facts.hostside import HOME
from modules.facts.survey import Question
from modules.operations.apt_source import AptSource, has_source, other_source
from modules.operations.differences import differs, files_differ
from modules.operations.job import Job, run_job
from modules.operations.managed_files import is_settled, settle
from modules.operations.require import unreadable

# cuda-toolkit is 4 GB from NVIDIA's servers; slow lines need hours.
INSTALL_TIMEOUT_S = 4 * 3600


def is_wanted(version: str | None, wanted: str) -> bool:
    """Whether a version is what `wanted`, a version or a pattern with `*`, stands for."""
    return version is not None and fnmatch.fnmatchcase(version, wanted)


def fetch_key(source: AptSource) -> StringCommand:
    """Fetch the repository's key on the host; another key than the named one is refused there."""
    repository = source.repository
    words = ("--url", repository.key_url, "--fingerprint", repository.fingerprint or "", "--to", source.key_path)
    return StringCommand("python3", f"{HOME}/fetch_key.py", *(QuoteString(word) for word in words))


def install_job(package: str, version: str, source_path: str | None) -> Job:
    """The job that installs the package."""
    command = ["python3", f"{HOME}/install_package.py", "--package", package, "--version", version]
    if source_path is not None:
        command += ["--source", source_path]
    return Job(
        name=f"apt-{package}",
        key=hashlib.sha256("\0".join(command).encode()).hexdigest()[:12],
        title=f"installing {package}",
        command=tuple(command),
        timeout_s=INSTALL_TIMEOUT_S,
    )


def package_there(package: str, source: AptSource | None) -> Question[PackageState]:
    """What the host has of the package and of its source."""
    asked = {} if source is None else {"paths": source.paths, "uri": source.repository.uri.rstrip("/")}
    return Question(AptPackage, {"package": package, **asked})


def package_installed(package: str, version: str, source: AptSource | None) -> Generator[PyinfraCommand, None, None]:
    """The inner form of `apt_package`; yields nothing where all is as it should be."""
    found = package_there(package, source).of(host)
    if found is None:
        yield from unreadable(f"the state of package {package}")
        return
    installed = is_wanted(found.installed, version)
    if not installed:
        # A dry run comes no farther than the first command.
        differs(f"package {package}", f"is {found.installed or 'not installed'}, and should be {version}")
    source_path: str | None = None
    if source is not None:
        source_path = other_source(found.mentions, source)
        ours = found.files.get(source.file.path) is not None
        needed = source.asked_for or ours or not (installed or _is_offered(package, version))
        if needed and source_path is None:
            source_path = source.file.path
            if not has_source(found, source):
                files_differ([source.file] if not is_settled(source.file, found.files.get(source.file.path)) else [],
                             found.files)  # fmt: skip
                if found.files.get(source.key_path) is None:
                    differs(source.key_path, "is not there")
                yield fetch_key(source)
                yield from settle([source.file])
    if not installed:
        yield from run_job(install_job(package, version, source_path))


def _is_offered(package: str, version: str) -> bool:
    offered = host.get_fact(AptVersions, package=package) or ()
    return any(is_wanted(candidate, version) for candidate in offered)


@operation()
def apt_package(package: str, version: str, source: AptSource | None = None) -> Generator[PyinfraCommand, None, None]:
    """Have a package installed at a version, from a signed source.

    + package: name of the package
    + version: exact version, or a pattern with `*`; what is installed and fits is left as it is
    + source: where to get it when the host has no source of its own; None: only from the host's own
    """
    changes = False
    for command in package_installed(package, version, source):
        changes = True
        yield command
    if not changes:
        host.noop(f"{package} is installed at {version}")

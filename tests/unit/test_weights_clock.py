"""A host whose clock is wrong: told by name where TLS or apt fails for it, and no harm to what was verified."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import format_datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from modules.hostside import install_package, install_tools, weights_stamp
from modules.hostside.install_package import InstallError
from modules.hostside.progress import Progress
from modules.hostside.weights_stamp import Repository, WantedFile
from modules.lab.mirror.faults import Faults
from modules.lab.mirror.journal import Journal
from modules.lab.mirror.server import MirrorServer

FETCH = Path(weights_stamp.__file__).with_name("fetch_weights.py")
COMMIT = "c" * 40
DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)


def certificate(folder: Path, begins: datetime.datetime, ends: datetime.datetime) -> tuple[Path, Path]:
    """One for 127.0.0.1, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@contextmanager
def hub_with(folder: Path, begins: datetime.datetime, ends: datetime.datetime) -> Iterator[tuple[str, Path]]:
    """A hub's address, and the authority that signed for it."""
    chain, key = certificate(folder, begins, ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    faults, journal = Faults(folder / "faults.json"), Journal(folder / "requests.jsonl")
    server = MirrorServer(("127.0.0.1", 0), {}, faults, journal, context)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", chain
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("begins", "ends", "told"),
    [
        # To a clock that is behind, the hub's certificate is one of tomorrow; to one that is ahead, it is over.
        (NOW + DAY, NOW + 2 * DAY, "its certificate is not valid at the time that this host's clock shows"),
        (NOW - 2 * DAY, NOW - DAY, "its certificate is not valid at the time that this host's clock shows"),
        (NOW - DAY, NOW + DAY, "the hub has no such repository (404)|the hub answered 421"),
    ],
)
def test_a_certificate_that_is_not_valid_now_is_told_from_one_that_is_not_trusted(
    tmp_path: Path, begins: datetime.datetime, ends: datetime.datetime, told: str
) -> None:
    with hub_with(tmp_path, begins, ends) as (endpoint, authority):
        words = ["--repository", "owner/tiny", "--revision", "main", "--home", str(tmp_path)]
        trusting = {"HF_ENDPOINT": endpoint, "SSL_CERT_FILE": str(authority)}
        done = subprocess.run(
            [sys.executable, str(FETCH), *words], env={**os.environ, **trusting}, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip

    assert done.returncode == 1
    assert any(words in done.stderr for words in told.split("|")), done.stderr
    assert "Traceback" not in done.stderr
    if "clock" in told:
        assert "set the clock (timedatectl)" in done.stderr
        assert "ca_bundle" not in done.stderr


def test_what_pip_says_of_the_clock_is_noticed() -> None:
    late = (
        "SSLError(SSLCertVerificationError(1, 'certificate verify failed: certificate is not yet valid (_ssl.c:1006)'))"
    )

    assert install_tools.follow(["Collecting tokenizers\n", f"{late}\n", "ERROR: no match\n"], 2, Progress())
    assert not install_tools.follow(["Collecting tokenizers\n", "ERROR: no match\n"], 2, Progress())


@pytest.mark.parametrize("year", [1999, 2071])
def test_what_was_verified_stays_so_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    monkeypatch.setattr(weights_stamp, "STAMPS", tmp_path / "stamps")
    repository, data = Repository(tmp_path, "owner/tiny"), b"weights"
    file = WantedFile("model.safetensors", len(data), hashlib.sha256(data).hexdigest(), lfs=True)
    repository.blob(file).parent.mkdir(parents=True)
    repository.blob(file).write_bytes(data)
    then = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC).timestamp()
    os.utime(repository.blob(file), (then, then))
    entry = repository.snapshot(COMMIT) / file.path
    entry.parent.mkdir(parents=True)
    entry.symlink_to(repository.blob(file))
    weights_stamp.write_stamp(repository, COMMIT, {"include": [], "exclude": []}, [file], "now")
    # The clock was set right meanwhile, or wrong.
    monkeypatch.setattr(time, "time", lambda: then - 10**9)

    stamp = weights_stamp.read_stamp(repository, COMMIT)

    assert stamp is not None
    assert weights_stamp.touched(stamp) == []
    os.utime(repository.blob(file))
    assert weights_stamp.touched(stamp) == [f"{entry}: changed since it was verified"]


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt here")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"Date": format_datetime(NOW + DAY, usegmt=True)}, "this host's clock"),
        (
            {
                "Date": format_datetime(NOW - 3 * DAY, usegmt=True),
                "Valid-Until": format_datetime(NOW - DAY, usegmt=True),
            },
            "this host's clock",
        ),
        ({"Date": format_datetime(NOW, usegmt=True)}, ""),
    ],
)
def test_a_repository_of_another_time_is_told_with_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], told: str
) -> None:
    repository, lists = tmp_path / "repository", tmp_path / "state" / "lists"
    repository.mkdir()
    (lists / "partial").mkdir(parents=True)
    (repository / "Packages").write_text("")
    empty = hashlib.sha256(b"").hexdigest()
    head = {"Origin": "test", "Suite": "x", **fields}
    lines = [f"{name}: {value}" for name, value in head.items()]
    (repository / "Release").write_text("\n".join([*lines, "SHA256:", f" {empty} 0 Packages", ""]))
    sources = tmp_path / "test.list"
    sources.write_text(f"deb [trusted=yes] file:{repository} ./\n")
    configuration = tmp_path / "apt.conf"
    configuration.write_text(
        f'Dir::State "{tmp_path}/state"; Dir::State::Lists "{lists}"; Dir::Cache "{tmp_path}/cache"; '
        'APT::Sandbox::User "root"; Dir::Etc::parts "-";\n'
    )
    (tmp_path / "cache" / "archives" / "partial").mkdir(parents=True)
    monkeypatch.setenv("APT_CONFIG", str(configuration))

    if not told:
        install_package.update(str(sources))
        return
    with pytest.raises(InstallError) as refused:
        install_package.update(str(sources))
    assert told in str(refused.value)
    assert "timedatectl" in str(refused.value)

"""The lab's own authorities: a CA with the mirror's certificate, and the key that signs the apt repositories."""

from __future__ import annotations

import ipaddress
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from modules.lab.machine import need, run
from modules.lab.pieces.piece import Piece

MIRROR_NAMES = ("hub.lab", "encodings.lab", "apt.lab", "pypi.lab", "registry.lab")
CA, CERTIFICATE, KEY = "ca.pem", "server.pem", "server.key"
APT_KEY, APT_SECRET_KEY, APT_FINGERPRINT = "key.asc", "secret.asc", "fingerprint"
_YEARS = 10


def identity() -> Piece:
    """A folder with `ca.pem`, `server.pem`, `server.key`, `key.asc`, `secret.asc` and `fingerprint`."""

    def build(folder: Path) -> None:
        _make_certificates(folder)
        _make_apt_key(folder)

    return Piece("identity", ["1", MIRROR_NAMES, _YEARS], build)


def _make_certificates(folder: Path) -> None:
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tinderbox lab CA")])
    authority = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _certificate(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(authority, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in (*MIRROR_NAMES, "localhost")]
    names.append(x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")))
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tinderbox lab mirror")])
    server = (
        _certificate(server_name, ca_name, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    (folder / CA).write_bytes(ca.public_bytes(Encoding.PEM))
    (folder / CERTIFICATE).write_bytes(server.public_bytes(Encoding.PEM))
    (folder / KEY).touch(mode=0o600)
    (folder / KEY).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * _YEARS))
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates, key_cert_sign=sign_certificates, crl_sign=sign_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _make_apt_key(folder: Path) -> None:
    need({"gpg": "gnupg"})
    # A short path: gpg's agent has a socket in it, whose name may not exceed 107 bytes.
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--pinentry-mode", "loopback", "--passphrase", ""]
        run([*gpg, "--quick-generate-key", "Tinderbox lab apt repositories <apt@apt.lab>", "rsa3072", "sign", "never"])
        (folder / APT_KEY).write_text(run([*gpg, "--armor", "--export"]))
        (folder / APT_SECRET_KEY).touch(mode=0o600)
        (folder / APT_SECRET_KEY).write_text(run([*gpg, "--armor", "--export-secret-keys"]))
        listed = run([*gpg, "--with-colons", "--fingerprint"]).splitlines()
        (folder / APT_FINGERPRINT).write_text(
            next(line.split(":")[9] for line in listed if line.startswith("fpr")) + "\n"
        )
        run(["gpgconf", "--homedir", home, "--kill", "all"])

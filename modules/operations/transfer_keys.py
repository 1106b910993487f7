"""Keys for one transfer between hosts: made on the spot, known to its hosts alone, and gone after it."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

# Hosts' clocks may be wrong; what ends a transfer is its unit's end.
_SLACK = datetime.timedelta(days=7)


@dataclass(frozen=True)
class TransferKeys:
    """In PEM form. `authority`: a certificate whose key is kept nowhere; `server`, `client`: certificates with keys."""

    authority: str
    server: str
    client: str


def transfer_keys(address: str) -> TransferKeys:
    """Keys for the host at an IP address, and for those that connect to it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signer = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("tinderbox transfer", signer, signer, [x509.BasicConstraints(ca=True, path_length=0)])
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    leaves: list[str] = []
    extensions: dict[str, list[x509.ExtensionType]] = {
        "offer": [place, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])],
        "receiver": [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])],
    }
    for name, wanted in extensions.items():
        key = ec.generate_private_key(ec.SECP256R1())
        leaves.append(_pem(_signed(name, key, signer, wanted)) + _key_pem(key))
    return TransferKeys(_pem(authority), *leaves)


def _signed(
    name: str, key: EllipticCurvePrivateKey, signer: EllipticCurvePrivateKey, extensions: list[x509.ExtensionType]
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    def called(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(called(name))
        .issuer_name(called("tinderbox transfer"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _SLACK)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

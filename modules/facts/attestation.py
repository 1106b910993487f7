"""What was seen in a container image on a host."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout
from modules.spec.attestation import Attestation

ATTESTATIONS = layout.STATE / "attestations"
_ABSENT = "absent"


@dataclass(frozen=True)
class Attested:
    """`image`: the id of the image that has the name now, None where there is none. `seen`: the kept attestation."""

    image: str | None
    seen: Attestation | None


def attestation_file(reference: str) -> str:
    """Where `attest_image.py` keeps the attestation of the image of that name."""
    return str(ATTESTATIONS / (re.sub(r"[^A-Za-z0-9._-]+", "-", reference) + ".json"))


class ImageAttestation(HostFact[Attested]):
    """The attestation of the image that has a name. None in it where the name has come to stand for another image."""

    def command(self, reference: str) -> StringCommand:
        """The image's id, then the file, if there is one.

        + reference: the image's name
        """
        file = QuoteString(attestation_file(reference))
        return StringCommand(
            *("docker image inspect --format", QuoteString("{{.Id}}"), QuoteString(reference), "2>/dev/null"),
            *("|| echo", _ABSENT, "; ! test -e", file, "|| cat", file),
        )

    def parse(self, lines: list[str]) -> Attested:
        """The line with the id, and the JSON after it."""
        image = next((line for line in lines if line.startswith("sha256:")), None)
        begin = next((number for number, line in enumerate(lines) if line.startswith("{")), len(lines))
        document = "\n".join(lines[begin:])
        seen = Attestation.model_validate_json(document) if document else None
        return Attested(image, seen if seen is not None and seen.image == image else None)

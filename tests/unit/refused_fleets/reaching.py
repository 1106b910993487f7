"""What a fleet file must not say of how hosts are reached: SSH, networks, mirrors, secrets."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
    refusal(
        "users that ssh would read as an option, or as nobody",
        """\
        fleet: office
        ssh: {user: '-oProxyCommand=sh'}
        hosts:
          spark-1: {ssh: {user: ''}}
          spark-2: {ssh: {user: 'ana, ben'}}
          spark-3: {ssh: {user: 'CORP\\ana@example.net'}}
        """,
        (2, "ssh.user", "write a user's name"),
        (4, "hosts.spark-1.ssh.user", "write a user's name"),
        (5, "hosts.spark-2.ssh.user", "write a user's name"),
    ),
    refusal(
        "a password in place of a secret's name",
        """\
        fleet: office
        ssh: {password: hunter-two}
        secrets: {login: {env: LOGIN}}
        hosts: {spark-1: {ssh: {sudo_password: login}}}
        """,
        (2, "ssh.password", "names no secret of secrets:; declare it there, as in {spark-password: {env: VARIABLE}}"),
    ),
    refusal(
        "a host key without its hash's name, and a kind of sudo that there is not",
        """\
        fleet: office
        ssh: {sudo: some}
        hosts: {spark-1: {ssh: {host_key: XgYe1IuqKnaSIeM1CQqKl85dR+qwWPfUNjnBhUhlEZg}}}
        """,
        (2, "ssh.sudo", "not one of the choices; write one of 'listed' or 'all'"),
        (3, "hosts.spark-1.ssh.host_key", "has not the right form; write a fingerprint as `ssh-keygen -lf` prints it"),
    ),
    refusal(
        "an address at which no other host reaches this one",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              network:
                peer_address: 127.0.0.1
        """,
        (6, "hosts.spark-1.settings.network.peer_address", "is no address at which other hosts reach this one"),
    ),
    refusal(
        "one address for passing on images, and two hosts",
        """\
        fleet: office
        defaults:
          network: {peer_address: 10.0.0.11}
        hosts:
          spark-1: {}
          spark-2: {}
        """,
        (6, "hosts.spark-2.settings.network.peer_address", "10.0.0.11 is spark-1's too; give each host its own"),
    ),
    refusal(
        "port that is no number",
        """\
        fleet: office
        ssh: {port: ssh}
        hosts: {spark-1: {}}
        """,
        (2, "ssh.port", "not a whole number; write a whole number, without a unit"),
    ),
    refusal(
        "a misspelt kind of secret",
        """\
        fleet: office
        secrets: {api-key: {envv: OFFICE_API_KEY}}
        hosts: {spark-1: {}}
        """,
        (2, "secrets.api-key.envv", "unknown key; did you mean env?"),
    ),
    refusal(
        "a lone address for the network between hosts",
        """\
        fleet: office
        defaults:
          weights: {spread: {network: 192.168.100.1}}
        hosts: {spark-1: {}}
        """,
        (3, "defaults.weights.spread.network", "not an IPv4 network; write it as 192.168.100.0/24"),
    ),
    refusal(
        "files that are not there",
        """\
        fleet: office
        ssh:
          key: keys/id_ed25519
          known_hosts: known_hosts
        defaults:
          network:
            ca_bundle: ca.pem
        hosts: {spark-1: {}, spark-2: {}}
        """,
        (3, "ssh.key", "no such file:"),
        (4, "ssh.known_hosts", "no such file:"),
        (7, "defaults.network.ca_bundle", "no such file:"),
    ),
    refusal(
        "the fleet file itself as the key",
        """\
        fleet: office
        ssh: {key: fleet.yaml}
        hosts: {spark-1: {}}
        """,
        (2, "ssh.key", "fleet.yaml holds no private key; name the private half"),
    ),
    refusal(
        "a repository with two fingerprints, and one with none",
        """\
        fleet: office
        defaults:
          network:
            apt:
              cuda:
                uri: https://mirror.example.net/cuda
                key_url: https://mirror.example.net/key.asc
                fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC
                fingerprint_file: key.fingerprint
              container_toolkit:
                uri: https://mirror.example.net/toolkit
                key_url: https://mirror.example.net/key.asc
        hosts: {spark-1: {}}
        """,
        (5, "defaults.network.apt.cuda", "give exactly one of fingerprint, fingerprint_file"),
        (10, "defaults.network.apt.container_toolkit", "give exactly one of fingerprint, fingerprint_file"),
    ),
)

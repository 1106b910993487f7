"""What a fleet file must not say of the network between Sparks."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import Refusal, refusal

_HOSTS = "hosts: {spark-1: {groups: [pair]}, spark-2: {groups: [pair]}, spark-3: {groups: [pair]}}"


def _of(name: str, fabric: str, key: str, words: str) -> Refusal:
    """A fleet of a pair (a trio where three are named) whose group says `fabric`; the problem is in the fourth line."""
    count = 3 if "spark-3" in fabric else 2
    hosts = ", ".join(f"spark-{number}: {{groups: [pair]}}" for number in range(1, count + 1))
    text = f"fleet: office\ngroups:\n  pair:\n    fabric: {{{fabric}}}\nhosts: {{{hosts}}}\n"
    where = "groups.pair.fabric" + (f".{key}" if key else "")
    return Refusal(name, text, ((4, where, words),))


_PAIR = "members: [spark-1, spark-2]"
_THREE = "members: [spark-1, spark-2, spark-3]"

REFUSALS = (
    _of(
        "a port that a Spark has not",
        f"topology: direct, {_PAIR}, cables: [[spark-1/f0, spark-2/f2]]",
        "cables[0][1]",
        "write a member and its port, as in spark-1/f0",
    ),
    _of(
        "a network that nobody may use",
        f"topology: direct, {_PAIR}, network: 240.0.0.0/8",
        "network",
        "240.0.0.0/8 can not be given to hosts; write a private network",
    ),
    _of(
        "docker's own network",
        f"topology: direct, {_PAIR}, network: 172.17.0.0/16",
        "network",
        "overlaps 172.17.0.0/16, which docker gives to containers",
    ),
    _of(
        "a network within docker's own",
        f"topology: direct, {_PAIR}, network: 172.17.4.0/22",
        "network",
        "write another network, as 192.168.100.0/22",
    ),
    _of(
        "a network around docker's own",
        f"topology: direct, {_PAIR}, network: 172.16.0.0/12",
        "network",
        "overlaps 172.17.0.0/16",
    ),
    _of(
        "a public network",
        f"topology: direct, {_PAIR}, network: 8.8.8.0/24",
        "network",
        "holds addresses of the internet",
    ),
    _of(
        "a network that is public in a part",
        f"topology: direct, {_PAIR}, network: 192.168.0.0/15",
        "network",
        "holds addresses of the internet",
    ),
    _of("a topology that is none", f"topology: star, {_PAIR}", "topology", "direct"),
    _of("a pair of three", f"topology: direct, {_THREE}", "members", "joins 2 hosts, and 3 are named; "),
    _of("a ring of two", f"topology: ring, {_PAIR}", "members", "joins 3 hosts, and 2 are named"),
    _of("a member twice", "topology: direct, members: [spark-1, spark-1]", "members", "spark-1 stands here twice"),
    _of("no network", f"topology: direct, {_PAIR}, network: 192.168.100.1", "network", "not an IPv4 network"),
    _of(
        "a loopback network", f"topology: direct, {_PAIR}, network: 127.0.0.0/8", "network", "can not be given to hosts"
    ),
    _of(
        "a small network", f"topology: direct, {_PAIR}, network: 10.9.0.0/29", "network", "is too small for 4 networks"
    ),
    _of("a small network of three", f"topology: ring, {_THREE}, network: 10.9.0.0/28", "network", "too small for 8"),
    _of("an MTU that no port takes", f"topology: direct, {_PAIR}, mtu: 64000", "mtu", "9216"),
    _of("cables at a switch", f"topology: switch, {_PAIR}, cables: [[spark-1/f0, spark-2/f0]]", "cables", "no cables"),
    _of("ports without a switch", f"topology: direct, {_PAIR}, ports: [f0]", "ports", "only a switch takes ports"),
    _of(
        "a cable to a stranger", f"topology: direct, {_PAIR}, cables: [[spark-1/f0, spark-9/f0]]", "cables", "no member"
    ),
    _of("a cable to itself", f"topology: direct, {_PAIR}, cables: [[spark-1/f0, spark-1/f1]]", "cables", "with itself"),
    _of(
        "one port for two cables",
        f"topology: direct, {_PAIR}, cables: [[spark-1/f0, spark-2/f0], [spark-1/f0, spark-2/f1]]",
        "cables",
        "spark-1/f0 is the end of two cables",
    ),
    _of("a mesh without cables", f"topology: mesh, {_THREE}", "cables", "needs its cables written out"),
    _of(
        "a mesh that lacks a cable",
        f"topology: mesh, {_THREE}, cables: [[spark-1/f0, spark-2/f1], [spark-2/f0, spark-3/f1]]",
        "cables",
        "one for each two hosts",
    ),
    _of(
        "too large a buffer",
        f"topology: direct, {_PAIR}, gate: {{nccl_bytes: 17179869184}}",
        "gate.nccl_bytes",
        "1073741824",
    ),
    _of("a member that is no host", "topology: direct, members: [spark-1, spark-9]", "members", "no host 'spark-9'"),
    refusal(
        "a host that is no member of its fabric",
        f"""\
        fleet: office
        groups:
          pair:
            fabric: {{topology: direct, {_PAIR}}}
        {_HOSTS}
        """,
        (4, "groups.pair.fabric.members", "host spark-3 has this fabric and is not among its members"),
    ),
    refusal(
        "a member without a fabric",
        f"""\
        fleet: office
        groups:
          pair:
            fabric: {{topology: direct, {_PAIR}}}
        hosts: {{spark-1: {{groups: [pair]}}, spark-2: {{}}}}
        """,
        (4, "groups.pair.fabric.members", "spark-2 is a member and has no fabric"),
    ),
    refusal(
        "members of two minds",
        f"""\
        fleet: office
        groups:
          pair:
            fabric: {{topology: direct, {_PAIR}}}
        hosts:
          spark-1: {{groups: [pair]}}
          spark-2:
            groups: [pair]
            settings: {{fabric: {{mtu: 1500}}}}
        """,
        (4, "groups.pair.fabric.members", "spark-1 is a member and its fabric differs from spark-2's"),
        (4, "groups.pair.fabric.members", "spark-2 is a member and its fabric differs from spark-1's"),
    ),
    refusal(
        "two fabrics in one network",
        """\
        fleet: office
        groups:
          one:
            fabric: {topology: direct, members: [spark-1, spark-2]}
          two:
            fabric: {topology: direct, members: [spark-3, spark-4], network: 192.168.101.0/24}
        hosts: {spark-1: {groups: [one]}, spark-2: {groups: [one]}, spark-3: {groups: [two]}, spark-4: {groups: [two]}}
        """,
        (4, "groups.one.fabric.network", "192.168.100.0/22 overlaps 192.168.101.0/24, the fabric of spark-3, spark-4"),
        (6, "groups.two.fabric.network", "192.168.101.0/24 overlaps 192.168.100.0/22, the fabric of spark-1, spark-2"),
    ),
    refusal(
        "the network that hosts are reached by",
        f"""\
        fleet: office
        defaults:
          fabric: {{topology: direct, {_PAIR}}}
        hosts:
          spark-1: {{address: 192.168.101.7}}
          spark-2: {{}}
        """,
        (3, "defaults.fabric.network", "192.168.101.7, where spark-1 is reached, is in 192.168.100.0/22"),
    ),
    refusal(
        "a peer address that the host does not get",
        f"""\
        fleet: office
        defaults:
          fabric: {{topology: direct, {_PAIR}}}
        hosts:
          spark-1:
            settings: {{network: {{peer_address: 192.168.100.11}}}}
          spark-2: {{}}
        """,
        (3, "defaults.fabric.network", "and spark-1 gets 192.168.100.1, 192.168.101.1, 192.168.102.1, 192.168.103.1"),
    ),
)

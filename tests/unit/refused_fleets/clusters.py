"""What a fleet file must not say of services that span hosts."""

from __future__ import annotations

from textwrap import indent

from tests.unit.refused_fleets.refusal import Refusal, refusal

_KEY = "defaults.services.gpt-oss"


def _pair(name: str, service: str, *told: tuple[int, str, str], hosts: str = "") -> Refusal:
    """Two hosts, and `service` as the lines of one from line 4 on; `hosts`: in place of the usual two."""
    usual = "  spark-1: {address: 10.0.0.11}\n  spark-2: {address: 10.0.0.12}\n"
    text = f"fleet: office\ndefaults:\n  services:\n{indent(service, '    ')}hosts:\n{hosts or usual}"
    return refusal(name, text, *told)


def _service(cluster: str = "{hosts: [spark-1, spark-2]}", engine: str = "vllm", more: str = "") -> str:
    model = "gpt-oss-120b-gguf" if engine == "llama-cpp" else "gpt-oss-120b"
    return f"gpt-oss:\n  engine: {engine}\n  model: {model}\n  cluster: {cluster}\n{more}"


REFUSALS = (
    _pair(
        "a cluster of a host that there is not",
        _service("{hosts: [spark-1, sparc-2]}"),
        (7, f"{_KEY}.cluster.hosts", "host spark-2 has service gpt-oss, and is none of its cluster's hosts"),
        (7, f"{_KEY}.cluster.hosts[1]", "no host 'sparc-2' in this fleet; did you mean spark-2?"),
    ),
    _pair(
        "a host in two places of a cluster",
        _service("{hosts: [spark-1, spark-1]}"),
        (7, f"{_KEY}.cluster.hosts", "spark-1 stands there twice"),
    ),
    _pair(
        "a cluster of one host",
        _service("{hosts: [spark-1]}"),
        (7, f"{_KEY}.cluster.hosts", "at least 2"),
    ),
    refusal(
        "a cluster at the ports of Prometheus",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              {engine: vllm, model: gpt-oss-120b, cluster: {hosts: [spark-1, spark-2], port: 9090, link_port: 9100}}
        hosts:
          spark-1: {address: 10.0.0.11, settings: {monitoring: {exporters: {}, prometheus: {}}}}
          spark-2: {address: 10.0.0.12}
        """,
        (5, f"{_KEY}.cluster.link_port", "9100 is that of monitoring.exporters.port; change it"),
        (5, f"{_KEY}.cluster.port", "9090 is that of monitoring.prometheus.port; change it"),
    ),
    refusal(
        "an address that the fabric gives to another member",
        """\
        fleet: office
        defaults:
          fabric: {topology: direct, members: [spark-1, spark-2]}
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              cluster:
                hosts: [spark-1, spark-2]
                addresses:
                  spark-1: 192.168.100.2
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12, settings: {network: {peer_address: 10.0.0.12}}}
        """,
        (11, f"{_KEY}.cluster.addresses.spark-1", "192.168.100.2 is in the network of spark-1's fabric, which gives"),
    ),
    _pair(
        "a member that the others are to reach on their own loopback",
        _service("{hosts: [spark-1, spark-2], addresses: {spark-1: 127.0.0.1}}"),
        (7, f"{_KEY}.cluster.addresses.spark-1", "127.0.0.1 is no address at which other hosts reach spark-1; write"),
    ),
    _pair(
        "a host that has the service and is no member",
        _service(),
        (7, f"{_KEY}.cluster.hosts", "host spark-3 has service gpt-oss, and is none of its cluster's hosts"),
        hosts="".join(f"  spark-{at}: {{address: 10.0.0.1{at}}}\n" for at in (1, 2, 3)),
    ),
    refusal(
        "a member without the service",
        """\
        fleet: office
        hosts:
          spark-1:
            address: 10.0.0.11
            settings:
              services:
                gpt-oss: {engine: vllm, model: gpt-oss-120b, cluster: {hosts: [spark-1, spark-2]}}
          spark-2: {address: 10.0.0.12}
        """,
        (7, "hosts.spark-1.settings.services.gpt-oss.cluster.hosts", "member spark-2 has no service gpt-oss"),
    ),
    refusal(
        "a worker that listens otherwise than its head",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-120b, cluster: {hosts: [spark-1, spark-2]}}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2:
            address: 10.0.0.12
            settings:
              services:
                gpt-oss:
                  listen: 127.0.0.2
                  profile: throughput
        """,
        (12, "hosts.spark-2.settings.services.gpt-oss.listen", "only the head has an API"),
        (13, "hosts.spark-2.settings.services.gpt-oss.profile", "differs from that of the head spark-1"),
    ),
    refusal(
        "members that keep their weights in two places",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-120b, cluster: {hosts: [spark-1, spark-2]}}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12, settings: {weights: {home: /data/huggingface}}}
        """,
        (7, "hosts.spark-2.settings.weights.home", "differs from that of spark-1"),
    ),
    _pair(
        "an engine that can not span hosts",
        _service(engine="llama-cpp"),
        (5, f"{_KEY}.engine", "can not span hosts (llama.cpp's rpc is not supported)"),
    ),
    _pair(
        "tensor parallel over more than there is",
        _service(more="  flags: {tensor-parallel-size: 4}\n"),
        (8, f"{_KEY}.flags.tensor-parallel-size", "is for 4 GPUs, and the cluster has 2 hosts"),
    ),
    _pair(
        "tensor and pipeline parallel that multiply to too much",
        _service(engine="sglang", more="  flags: {tp-size: 2, pipeline-parallel-size: 2}\n"),
        (8, f"{_KEY}.flags.tp-size", "tp-size 2 x pipeline-parallel-size 2 is for 4 GPUs"),
    ),
    _pair(
        "a flag that the cluster sets",
        _service(more="  flags: {nnodes: 2}\n"),
        (8, f"{_KEY}.flags.nnodes", "this flag is set by the service's cluster"),
    ),
    _pair(
        "a head that others can reach without a key",
        _service(more="  listen: 0.0.0.0\n"),
        (8, f"{_KEY}.listen", "names no api_key"),
    ),
    _pair(
        "a member that the others can not find",
        _service(),
        (7, f"{_KEY}.cluster", "it is not known at which address the others reach member spark-2"),
        hosts="  spark-1: {address: 10.0.0.11}\n  spark-2: {address: spark-2.office}\n",
    ),
    _pair(
        "two members at one address",
        _service("{hosts: [spark-1, spark-2], addresses: {spark-1: 10.1.0.1, spark-2: 10.1.0.1}}"),
        (7, f"{_KEY}.cluster.addresses.spark-2", "10.1.0.1 is spark-1's too"),
    ),
    _pair(
        "an address of a host that is no member",
        _service("{hosts: [spark-1, spark-2], addresses: {spark-3: 10.1.0.3}}"),
        (7, f"{_KEY}.cluster.addresses.spark-3", "spark-3 is none of the cluster's hosts"),
    ),
    _pair(
        "a cluster at the port of its own service",
        _service("{hosts: [spark-1, spark-2], port: 8000}"),
        (7, f"{_KEY}.cluster.port", "8000 is that of service gpt-oss"),
    ),
    _pair(
        "one port for both of a cluster's links",
        _service("{hosts: [spark-1, spark-2], port: 29502}"),
        (7, f"{_KEY}.cluster.link_port", "port and link_port are both 29502"),
    ),
    refusal(
        "hosts that change one by one and together",
        """\
        fleet: office
        strategy: {canary: 1}
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-120b, cluster: {hosts: [spark-1, spark-2]}}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12}
        """,
        (2, "strategy", "service gpt-oss spans hosts, which change together"),
    ),
)

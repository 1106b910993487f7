"""What a fleet file must not say of services that share a host, and of those that stand in no layer."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
    refusal(
        "true and false where numbers are wanted, in every layer",
        """\
        fleet: office
        ssh: {port: true}
        models:
          small: {repository: acme/small, served_as: small, source: ours, size_gib: true}
        services:
          chat: {engine: vllm, model: small, replicas: true, priority: false}
        defaults:
          hardware: {memory_gib: true}
        groups:
          desk: {weights: {workers: true}}
        hosts:
          spark-1: {groups: [desk], settings: {system: {swappiness: true}}}
        """,
        (2, "ssh.port", "not a whole number"),
        (4, "models.small.size_gib", "not a number"),
        (6, "services.chat.priority", "not a whole number"),
        (6, "services.chat.replicas", "not a whole number"),
        (8, "defaults.hardware.memory_gib", "not a number"),
        (10, "groups.desk.weights.workers", "not a whole number"),
        (12, "hosts.spark-1.settings.system.swappiness", "not a whole number"),
    ),
    refusal(
        "two services of which the shares are more than the machine, each with a host that has room",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                chat:
                  engine: vllm
                  model: gpt-oss-20b
                  port: 8001
                  flags:
                    gpu-memory-utilization: 0.6
                main: {engine: vllm-mxfp4, model: gpt-oss-120b, priority: 1}
          spark-2: {}
        """,
        (11, "hosts.spark-1.settings.services.chat.flags.gpu-memory-utilization", "or on host spark-2"),
    ),
    refusal(
        "a service that does not fit beside another, whose model there is smaller",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                main: {engine: vllm, model: gpt-oss-20b, flags: {gpu-memory-utilization: 0.58}}
                qwen: {engine: vllm, model: qwen3-8-27b-fp8, port: 8001}
        """,
        (
            7,
            "hosts.spark-1.settings.services.qwen",
            "would fit: model: qwen3-8-27b-nvfp4 with gpu-memory-utilization: 0.2",
        ),
    ),
    refusal(
        "replicas that fit nowhere, and what would",
        """\
        fleet: office
        services:
          big: {engine: vllm-mxfp4, model: gpt-oss-120b, on: [spark-1]}
          chat:
            engine: vllm
            model: gpt-oss-20b
            port: 8001
            flags: {gpu-memory-utilization: 0.5}
            replicas: 2
        hosts:
          spark-1: {}
          spark-2: {}
        """,
        (
            9,
            "services.chat.replicas",
            "1 of 2 replicas fit nowhere: spark-1: it takes 68.53 GiB and 25.51 GiB are left",
        ),
    ),
    refusal(
        "more replicas than hosts, a group that is none, a host twice taken, and hosts that there are not",
        """\
        fleet: office
        services:
          chat: {engine: vllm, model: gpt-oss-20b, replicas: 3}
          code: {engine: vllm, model: gpt-oss-20b, port: 8001, on: [rakc]}
          text: {engine: vllm, model: gpt-oss-20b, port: 8002, replicas: 0}
          none: {engine: vllm, model: gpt-oss-20b, port: 8003, on: [empty]}
        groups:
          rack: {}
          empty: {}
        hosts:
          spark-1: {groups: [rack]}
          spark-2: {}
        """,
        (3, "services.chat.replicas", "3 replicas, one to a host, and it may be on 2 hosts; write 2 or less"),
        (4, "services.code.on[0]", "no group and no host 'rakc' in this fleet; did you mean rack?"),
        (5, "services.text.replicas", "out of range"),
        (6, "services.none.on", "there is no host for it"),
    ),
    refusal(
        "a model of which nobody knows the size, to be placed by it",
        """\
        fleet: office
        services:
          text:
            engine: llama-cpp
            model: {repository: acme/text, file: text.gguf, served_as: text, source: ours}
            replicas: 1
        hosts:
          spark-1: {}
        """,
        (5, "services.text.model", "write size_gib in a model that is written out"),
    ),
    refusal(
        "a service in the fleet's own and in the defaults",
        """\
        fleet: office
        services:
          chat: {engine: vllm, model: gpt-oss-20b}
        defaults:
          services:
            chat: {engine: vllm, model: gpt-oss-20b}
        hosts:
          spark-1: {}
        """,
        (6, "defaults.services.chat", "service chat is one of the fleet's own services too; keep one of them"),
    ),
    refusal(
        "mistakes in a service that stands in no layer",
        """\
        fleet: office
        services:
          chat: {engine: vlm, model: gpt-oss-20, prot: 8000, replicas: 1}
          code: {model: gpt-oss-20b}
        hosts:
          spark-1: {}
        """,
        (3, "services.chat.engine", "unknown engine 'vlm'; did you mean vllm?"),
        (3, "services.chat.model", "unknown model 'gpt-oss-20'; did you mean gpt-oss-20b?"),
        (3, "services.chat.prot", "unknown key; did you mean port?"),
        (4, "services.code.engine", "missing"),
    ),
    refusal(
        "a cluster that is to be placed",
        """\
        fleet: office
        services:
          big:
            engine: vllm
            model: gpt-oss-120b
            cluster: {hosts: [spark-1, spark-2]}
            replicas: 1
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12}
        """,
        (7, "services.big.replicas", "names them under cluster"),
    ),
    refusal(
        "two services on all hosts at one port",
        """\
        fleet: office
        services:
          chat: {engine: vllm, model: gpt-oss-20b, flags: {gpu-memory-utilization: 0.3}}
          code: {engine: vllm, model: gpt-oss-20b, flags: {gpu-memory-utilization: 0.3}}
        hosts:
          spark-1: {}
        """,
        (4, "services.code.port", "services chat and code both want port 8000"),
    ),
    refusal(
        "the same name twice",
        """\
        fleet: office
        services:
          chat: {engine: vllm, model: gpt-oss-20b}
          chat: {engine: vllm, model: gpt-oss-120b}
        hosts:
          spark-1: {}
        """,
        (4, "services.chat", "duplicate key"),
    ),
    refusal(
        "aliases that an engine does not take, that are no names, and that are the model's own",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                gguf: {engine: llama-cpp, model: gpt-oss-120b-gguf, aliases: [everyday]}
          spark-2:
            settings:
              services:
                text: {engine: vllm, model: gpt-oss-20b, aliases: [gpt-oss-20b]}
          spark-3:
            settings:
              services:
                text: {engine: vllm, model: gpt-oss-20b, aliases: ["a b"], priority: 101}
        """,
        (6, "hosts.spark-1.settings.services.gguf.aliases", "serves a model by one name alone"),
        (10, "hosts.spark-2.settings.services.text.aliases[0]", "is the model's own name already"),
        (14, "hosts.spark-3.settings.services.text.aliases[0]", "has not the right form"),
        (14, "hosts.spark-3.settings.services.text.priority", "out of range"),
    ),
    refusal(
        "one name of two services at a gateway",
        """\
        fleet: office
        secrets: {key: {env: HOME}}
        services:
          chat: {engine: vllm, model: gpt-oss-120b, listen: 0.0.0.0, api_key: key, aliases: [everyday], on: [spark-1]}
          code: {engine: vllm, model: gpt-oss-20b, listen: 0.0.0.0, api_key: key, aliases: [everyday], on: [spark-2]}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12}
          front: {address: 10.0.0.13, settings: {gateway: {}}}
        """,
        (9, "hosts.front.settings.gateway.services", "services chat and code both serve everyday"),
    ),
)

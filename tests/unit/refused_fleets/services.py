"""What a fleet file must not say of services: engines, models, profiles, ports, flags, keys."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
    refusal(
        "numbers where names are wanted",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              image: {builder: 12}
              services:
                gpt-oss:
                  engine: 12
                  model: 1.5
                  gate: 12
        """,
        (5, "hosts.spark-1.settings.image.builder", "no host '12' in this fleet"),
        (8, "hosts.spark-1.settings.services.gpt-oss.engine", "unknown engine '12'; known engines"),
        (9, "hosts.spark-1.settings.services.gpt-oss.model", "unknown model '1.5'; known models"),
        (10, "hosts.spark-1.settings.services.gpt-oss.gate", "unknown gate '12'; known gates"),
    ),
    refusal(
        "a model written out, for an engine and with a vocabulary that there are not",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                text:
                  engine: vllm
                  model:
                    repository: acme/text
                    served_as: text
                    source: ours
                    encodings: [o200k_base]
                    flags: {vlm: {max-model-len: 8192}}
        """,
        (12, "hosts.spark-1.settings.services.text.model.encodings[0]", "did you mean o200k_base.tiktoken?"),
        (13, "hosts.spark-1.settings.services.text.model.flags.vlm", "unknown engine 'vlm'; did you mean vllm?"),
    ),
    refusal(
        "an engine over more GPUs than a Spark has",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                gpt-oss:
                  engine: vllm
                  model: gpt-oss-120b
                  flags:
                    tensor-parallel-size: 2
                    data-parallel-size: 2
        """,
        (10, "hosts.spark-1.settings.services.gpt-oss.flags.tensor-parallel-size", "or name 2 hosts under cluster"),
        (11, "hosts.spark-1.settings.services.gpt-oss.flags.data-parallel-size", "a Spark has one; take it out"),
    ),
    refusal(
        "a watch that would be a load of its own",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                gpt-oss: {engine: vllm, model: gpt-oss-120b, watchdog: {every_s: 1}}
        """,
        (6, "hosts.spark-1.settings.services.gpt-oss.watchdog.every_s", "must be at least 5"),
    ),
    refusal(
        "a restart after a single slow reply",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              services:
                gpt-oss: {engine: vllm, model: gpt-oss-120b, watchdog: {checks: 1}}
        """,
        (6, "hosts.spark-1.settings.services.gpt-oss.watchdog.checks", "must be at least 2"),
    ),
    refusal(
        "a service at the port at which images are passed on",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              image: {port: 8000}
              services:
                gpt-oss: {engine: vllm, model: gpt-oss-120b}
        """,
        (7, "hosts.spark-1.settings.services.gpt-oss.port", "both want port 8000; change it, or image.port"),
    ),
    refusal(
        "unknown key deep in the settings",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              prot: 8000
        hosts:
          spark-1:
          spark-2:
        """,
        (7, "defaults.services.gpt-oss.prot", "unknown key; did you mean port?"),
    ),
    refusal(
        "unknown key in a model that is written out",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model:
                repository: openai/gpt-oss-20b
                size_gib: 13
                served_as: small
                source: our own
                revison: main
        hosts: {spark-1: {}}
        """,
        (11, "defaults.services.gpt-oss.model.revison", "unknown key; did you mean revision?"),
    ),
    refusal(
        "unknown engine",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxpf4
              model: gpt-oss-120b
        hosts: {spark-1: {}}
        """,
        (5, "defaults.services.gpt-oss.engine", "unknown engine 'vllm-mxpf4'; did you mean vllm-mxfp4?"),
    ),
    refusal(
        "unknown model, gate and profile",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: sglang
              model: gpt-oss-12b
              gate: sglang-one-stream
              profile: latence
        hosts: {spark-1: {}}
        """,
        (6, "defaults.services.gpt-oss.model", "unknown model 'gpt-oss-12b'; did you mean gpt-oss-120b?"),
        (7, "defaults.services.gpt-oss.gate", "unknown gate 'sglang-one-stream'; did you mean sglang-single-stream?"),
        (8, "defaults.services.gpt-oss.profile", "engine sglang has no profile 'latence'; did you mean latency?"),
    ),
    refusal(
        "missing engine",
        """\
        fleet: office
        groups:
          big:
            services:
              gpt-oss:
                model: gpt-oss-120b
        hosts: {spark-1: {groups: [big]}}
        """,
        (5, "groups.big.services.gpt-oss.engine", "missing; add this key"),
    ),
    refusal(
        "port out of range",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-120b, port: 70000}
            other:
              engine: vllm
              model: gpt-oss-20b
              port: 80
        hosts:
          spark-1:
            ssh: {port: 0}
        """,
        (4, "defaults.services.gpt-oss.port", "out of range: must be at most 65535; correct the number"),
        (8, "defaults.services.other.port", "out of range: must be at least 1024; correct the number"),
        (11, "hosts.spark-1.ssh.port", "out of range: must be at least 1; correct the number"),
    ),
    refusal(
        "one port for two services",
        """\
        fleet: office
        defaults:
          services:
            first: {engine: vllm, model: gpt-oss-20b}
            second: {engine: vllm, model: gpt-oss-20b}
        hosts: {spark-1: {}}
        """,
        (5, "defaults.services.second.port", "services first and second both want port 8000"),
    ),
    refusal(
        "unknown engine in a group that no host uses, and on a service that is wrong otherwise too",
        """\
        fleet: office
        groups:
          unused: {services: {gpt-oss: {engine: vlm, prot: 1}}}
        hosts: {spark-1: {}}
        """,
        (3, "groups.unused.services.gpt-oss.engine", "unknown engine 'vlm'; did you mean vllm?"),
        (3, "groups.unused.services.gpt-oss.prot", "unknown key; did you mean port?"),
    ),
    refusal(
        "listening to all by an engine that takes no key",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: sglang
              model: gpt-oss-120b
              listen: 0.0.0.0
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.gpt-oss.listen", "where others can reach it, and engine sglang takes no API key that"),
    ),
    refusal(
        "capabilities without a reason, and all of them",
        """\
        fleet: office
        defaults:
          services:
            one: {engine: vllm, model: gpt-oss-120b, container: {capabilities: [SYS_ADMIN]}}
            two: {engine: vllm, model: gpt-oss-120b, port: 8001, container: {capabilities: {IPC_LOCK: ""}}}
            three:
              engine: vllm
              model: gpt-oss-120b
              port: 8002
              container: {capabilities: {ALL: it is easier so}}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.one.container.capabilities", "a capability needs a reason; write each as `NAME: why"),
        (5, "defaults.services.two.container.capabilities", "a capability needs a reason; write `NAME: why"),
        (10, "defaults.services.three.container.capabilities", "would make the container privileged; name those"),
    ),
    refusal(
        "drafts that an engine does not take",
        """\
        fleet: office
        defaults:
          services:
            one:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              speculative: {model: gpt-oss-20b, method: draft}
            two:
              engine: vllm-cpu
              model: lab-gpt-oss-tiny
              port: 8001
              speculative: {model: lab-gpt-oss-tiny}
            three:
              engine: llama-cpp
              model: gpt-oss-120b-gguf
              port: 8002
              speculative: {model: gpt-oss-20b, method: draft}
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.one.speculative", "takes no draft model by method draft; use method eagle3"),
        (12, "defaults.services.two.speculative", "takes no draft model by method eagle3; take it out"),
        (17, "defaults.services.three.speculative.model", "engine llama-cpp serves one GGUF file"),
    ),
    refusal(
        "drafts that are none",
        """\
        fleet: office
        defaults:
          services:
            four: {engine: vllm, model: gpt-oss-120b, port: 8003, speculative: {model: gpt-oss-30b}}
            five: {engine: vllm, model: gpt-oss-120b, port: 8004, speculative: {model: gpt-oss-20b, tokens: 0}}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.four.speculative.model", "unknown model 'gpt-oss-30b'"),
        (5, "defaults.services.five.speculative.tokens", "must be at least 1"),
    ),
    refusal(
        "listening to a name",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, listen: localhost}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.gpt-oss.listen", "not an IP address; write one of the host's own"),
    ),
    refusal(
        "an engine that takes no key",
        """\
        fleet: office
        secrets: {api: {env: HOME}}
        defaults:
          services:
            gpt-oss: {engine: sglang, model: gpt-oss-120b, api_key: api}
        hosts: {spark-1: {}}
        """,
        (5, "defaults.services.gpt-oss.api_key", "engine sglang takes no API key that can be kept secret"),
    ),
    refusal(
        "a flag that the service's own keys set",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-120b, flags: {port: 8001}}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.gpt-oss.flags.port", "set by the service's own keys"),
    ),
    refusal(
        "a flag with dashes, and one whose value is a mapping",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              flags:
                --enforce-eager: true
                override: {a: 1}
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.flags.--enforce-eager", "has not the right form; write a flag's name without"),
        (9, "defaults.services.gpt-oss.flags.override", "not a flag's value; write true, false, a number"),
    ),
    refusal(
        "a group's settings for a service whose name is misspelt",
        """\
        fleet: office
        defaults:
          services: {gpt-oss: {engine: vllm, model: gpt-oss-120b}}
        groups:
          rack: {services: {gptoss: {profile: latency}}}
        hosts: {spark-1: {groups: [rack]}}
        """,
        (5, "groups.rack.services.gptoss", "no layer gives a service 'gptoss' an engine; did you mean gpt-oss?"),
    ),
    refusal(
        "settings for a service that there is not",
        """\
        fleet: office
        hosts: {spark-1: {settings: {services: {chat: {profile: latency}}}}}
        """,
        (2, "hosts.spark-1.settings.services.chat", "no layer gives a service 'chat' an engine; add engine:"),
    ),
    refusal(
        "a GGUF file for an engine that serves checkpoints",
        """\
        fleet: office
        defaults:
          services:
            wrong: {engine: sglang, model: gpt-oss-120b-gguf}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.wrong.model", "engine sglang serves safetensors, and this model is the GGUF"),
    ),
    refusal(
        "an error in a group of three hosts is told once",
        """\
        fleet: office
        groups:
          big: {services: {gpt-oss: {engine: vlm, model: gpt-oss-120b}}}
        hosts:
          spark-1: {groups: [big]}
          spark-2: {groups: [big]}
          spark-3: {groups: [big]}
        """,
        (3, "groups.big.services.gpt-oss.engine", "unknown engine 'vlm'; did you mean vllm?"),
    ),
    refusal(
        "one port for a service and the passing on of weights",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm, model: gpt-oss-20b, port: 6889}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.gpt-oss.port", "the passing on of weights both want port 6889; change it, or weights."),
    ),
    refusal(
        "a model without a file for an engine that is given one",
        """\
        fleet: office
        defaults:
          services:
            gguf: {engine: llama-cpp, model: gpt-oss-120b}
            fine: {engine: llama-cpp, model: gpt-oss-120b-gguf, port: 8001}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.gguf.model", "serves one GGUF file, and this model names none; take one whose entry"),
    ),
    refusal(
        "words where an engine wants a number",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              flags:
                tensor-parallel-size: two
                max-num-seqs: ''
                seed: true
                kv-cache-memory-bytes: [1, 2]
                max-num-batched-tokens: auto
            other:
              engine: sglang
              model: gpt-oss-120b
              port: 8001
              flags: {max-running-requests: four, watchdog-timeout: 5 minutes}
            third:
              engine: llama-cpp
              model: gpt-oss-120b-gguf
              port: 8002
              flags: {parallel: all, n-gpu-layers: all}
            fourth:
              engine: vllm
              port: 8003
              model:
                repository: a/b
                size_gib: 1
                served_as: b
                source: mine
                flags: {vllm: {max-num-seqs: few}}
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.flags.tensor-parallel-size", "takes a number, and 'two' is none; correct it"),
        (9, "defaults.services.gpt-oss.flags.max-num-seqs", "takes a number, and '' is none"),
        (10, "defaults.services.gpt-oss.flags.seed", "takes a number, and true is none"),
        (11, "defaults.services.gpt-oss.flags.kv-cache-memory-bytes", "takes a number, and a list is none"),
        (12, "defaults.services.gpt-oss.flags.max-num-batched-tokens", "takes a number, and 'auto' is none"),
        (17, "defaults.services.other.flags.max-running-requests", "takes a number, and 'four' is none"),
        (17, "defaults.services.other.flags.watchdog-timeout", "takes a number, and '5 minutes' is none"),
        (22, "defaults.services.third.flags.parallel", "takes a number, and 'all' is none"),
        (31, "defaults.services.fourth.model.flags.vllm.max-num-seqs", "takes a number, and 'few' is none"),
    ),
    refusal(
        "numbers that no flag can mean",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              flags:
                max-num-seqs: -1
                gpu-memory-utilization: 85
                max-model-len: -1
                max-num-batched-tokens: 32k
        groups:
          small:
            services:
              gpt-oss: {flags: {max-model-len: 0}}
        hosts:
          spark-1: {}
          spark-2: {groups: [small]}
        """,
        (
            8,
            "defaults.services.gpt-oss.flags.max-num-seqs",
            "-1 is nothing that --max-num-seqs can mean: it takes 1 or",
        ),
        (9, "defaults.services.gpt-oss.flags.gpu-memory-utilization", "it takes above 0 to 1; correct the number"),
        (15, "groups.small.services.gpt-oss.flags.max-model-len", "it takes 1 or more, or -1; correct the number"),
    ),
    refusal(
        "a readiness that is none",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              readiness:
                start_minutes: 0
                wanted_log: ["[MXFP4"]
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.readiness.start_minutes", "must be more than 0"),
        (9, "defaults.services.gpt-oss.readiness.wanted_log[0]", "not a regular expression (unterminated"),
    ),
)

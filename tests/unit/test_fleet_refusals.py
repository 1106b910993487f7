"""What a fleet file must not say, and how the refusal reads: file, line, key, what is wrong, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from modules.fleet import FleetError, load_fleet

GOOD = """\
fleet: office
hosts:
  spark-1:
    address: 10.0.0.11
"""


@dataclass(frozen=True)
class Refusal:
    """A fleet file and what is told of it: for each line its key, and words that must stand in it."""

    name: str
    text: str
    told: tuple[tuple[int, str, str], ...]


def refusal(name: str, text: str, *told: tuple[int, str, str]) -> Refusal:
    return Refusal(name, dedent(text), told)


REFUSALS = (
    refusal(
        "a builder that is no host",
        """\
        fleet: office
        defaults:
          image: {builder: spark-9}
        hosts:
          spark-1: {}
        """,
        (3, "defaults.image.builder", "no host 'spark-9' in this fleet; did you mean spark-1?"),
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
        "unknown key at the top",
        """\
        fleet: office
        host:
          spark-1: {}
        """,
        (1, "hosts", "the fleet is empty; add a host"),
        (2, "host", "unknown key; did you mean hosts?"),
    ),
    refusal(
        "unknown key of a host",
        """\
        fleet: office
        hosts:
          spark-1:
            adress: 10.0.0.11
        """,
        (4, "hosts.spark-1.adress", "unknown key; did you mean address?"),
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
        "unknown key like none: all are named",
        """\
        fleet: office
        defaults: {weights: {zzz: 1}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.weights.zzz", "unknown key; known keys: home, remove_unneeded, spread, workers"),
    ),
    refusal(
        "duplicate host by name",
        """\
        fleet: office
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12}
          spark-1: {address: 10.0.0.13}
        """,
        (5, "hosts.spark-1", "duplicate host: it stands on line 3 too; keep one of them"),
    ),
    refusal(
        "duplicate host by address and port",
        """\
        fleet: office
        ssh: {port: 2222}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.11, ssh: {port: 22}}
          spark-3: {address: 10.0.0.11, ssh: {port: 2222}}
        """,
        (6, "hosts.spark-3", "duplicate host: 10.0.0.11 port 2222 is spark-1's too (line 4)"),
    ),
    refusal(
        "duplicate host whose address is another's name",
        """\
        fleet: office
        hosts:
          spark.example.net:
          other: {address: Spark.Example.net}
        """,
        (4, "hosts.other", "duplicate host: Spark.Example.net port 22 is spark.example.net's too (line 3)"),
    ),
    refusal(
        "duplicate key",
        """\
        fleet: office
        defaults:
          weights: {workers: 4}
          weights: {workers: 8}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.weights", "duplicate key: it stands on line 3 too"),
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
        "port that is no number",
        """\
        fleet: office
        ssh: {port: ssh}
        hosts: {spark-1: {}}
        """,
        (2, "ssh.port", "not a whole number; write a whole number, without a unit"),
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
        "plain 12.1",
        """\
        fleet: office
        defaults:
          cuda:
            architecture: 12.1
        hosts: {spark-1: {}}
        """,
        (4, "defaults.cuda.architecture", "plain 12.1 has none of the native FP4 instructions"),
    ),
    refusal(
        "plain 12.1 for an image",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              image: {architecture: "12.1"}
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.gpt-oss.image.architecture", "use 12.1f (or 12.1a)"),
    ),
    refusal(
        "another GPU's architecture",
        """\
        fleet: office
        defaults: {cuda: {architecture: 12.0f}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.cuda.architecture", "12.0f is not the GB10's architecture; use 12.1f"),
    ),
    refusal(
        "the dead CUTLASS pin",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              image:
                pins:
                  cutlass:
                    commit: 7554e4a32b15929289aa80e8bc8a4e5f6f779407
                  flashinfr:
                    commit: f349e52496a72a00d8c4ac02c7a1e38523ff7194
        hosts: {spark-1: {}}
        """,
        (10, "defaults.services.gpt-oss.image.pins.cutlass.commit", "can not be built: this CUTLASS commit is not in"),
        (11, "defaults.services.gpt-oss.image.pins.flashinfr", "has no pin 'flashinfr'; did you mean flashinfer?"),
    ),
    refusal(
        "a triple that can not be built, one that is none, and a recipe without triples",
        """\
        fleet: office
        defaults:
          services:
            dead: {engine: vllm-mxfp4, model: gpt-oss-120b, image: {triple: original-196692b}}
            typo: {engine: vllm-mxfp4, model: gpt-oss-120b, port: 8001, image: {triple: eugr-4537bfd}}
            none: {engine: vllm, model: gpt-oss-120b, port: 8002, image: {triple: eugr-4537bfc}}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.dead.image.triple", "can not be built: this CUTLASS commit is not in the public fork"),
        (5, "defaults.services.typo.image.triple", "has no triple 'eugr-4537bfd'; did you mean eugr-4537bfc?"),
        (6, "defaults.services.none.image.triple", "has no triple 'eugr-4537bfc'; there are no triples here"),
    ),
    refusal(
        "a bundle's directory that is no absolute path, and one that is written while it is read",
        """\
        fleet: office
        defaults:
          network: {bundle: /mnt/usb/tinderbox}
          bundle: {export_to: /mnt/usb/tinderbox}
        hosts:
          spark-1: {}
          spark-2: {settings: {network: {bundle: usb/tinderbox}}}
        """,
        (4, "defaults.bundle.export_to", "takes what it needs from this very directory"),
        (7, "hosts.spark-2.settings.network.bundle", "has not the right form"),
    ),
    refusal(
        "short commit",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              image: {recipe: vllm-mxfp5, pins: {vllm: {commit: 045293d}}}
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.gpt-oss.image.pins.vllm.commit", "has not the right form; write 40 hex digits"),
        (7, "defaults.services.gpt-oss.image.recipe", "unknown image recipe 'vllm-mxfp5'; did you mean vllm-mxfp4?"),
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
        "unknown recipe",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, image: {recipe: vllm-mxfp5}}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.services.gpt-oss.image.recipe", "unknown image recipe 'vllm-mxfp5'; did you mean vllm-mxfp4?"),
    ),
    refusal(
        "own recipes: a template that is not there, one with a wrong name, both ways at once",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              image: {recipe: {template: ./mine.Dockerfile.j2, base: ubuntu, size_gib: 1, source: ours}}
            other:
              engine: vllm
              model: gpt-oss-120b
              port: 8001
              image: {recipe: {template: ./Mine.txt, base: ubuntu, size_gib: 1, source: ours}}
            third:
              engine: vllm
              model: gpt-oss-120b
              port: 8002
              image: {recipe: {reference: mine, digest: short, size_gib: 1, source: ours}}
        hosts: {spark-1: {}}
        """,
        (12, "defaults.services.other.image.recipe.template", "a template's file is called NAME.Dockerfile.j2"),
        (17, "defaults.services.third.image.recipe.digest", "has not the right form"),
    ),
    refusal(
        "an own recipe whose template is not there",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              image: {recipe: {template: ./mine.Dockerfile.j2, base: ubuntu, size_gib: 1, source: ours}}
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.gpt-oss.image.recipe.template", "mine.Dockerfile.j2; create it, or correct the path"),
    ),
    refusal(
        "limits of builds that are none, and a recipe whose compiler gives memory back",
        """\
        fleet: office
        defaults:
          build: {keep_gib: -1, stop_engines: perhaps, stop_engine: true}
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              image: {recipe: {reference: mine, compiler_gib: -8, size_gib: 1, source: ours}}
        hosts: {spark-1: {}}
        """,
        (3, "defaults.build.keep_gib", "out of range: must be at least 0"),
        (3, "defaults.build.stop_engine", "unknown key; did you mean stop_engines?"),
        (3, "defaults.build.stop_engines", "true or false"),
        (8, "defaults.services.gpt-oss.image.recipe.compiler_gib", "out of range: must be at least 0"),
    ),
    refusal(
        "listening to all without a key",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              listen: 0.0.0.0
        hosts: {spark-1: {}}
        """,
        (7, "defaults.services.gpt-oss.listen", "where others can reach it, without an API key; add api_key"),
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
        "a threshold on something that is not measured",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                workload: {pp: [2048], tg: [128]}
                thresholds:
                  tg128@pp512 c1: {min: 50}
        hosts: {spark-1: {}}
        """,
        (
            10,
            "defaults.services.gpt-oss.gate.thresholds.tg128@pp512 c1",
            "the workload does not measure this; it measures",
        ),
    ),
    refusal(
        "a workload that the engine's image can not run",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: sglang
              model: gpt-oss-120b
              gate:
                random: {prompts: 8}
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.gate.random", "engine sglang has no `vllm bench serve` in its image"),
    ),
    refusal(
        "a workload that can not run from the controller",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                client: controller
                random: {prompts: 8}
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (
            9,
            "defaults.services.gpt-oss.gate.random",
            "runs inside the engine's image, so on the host; take it out, or set client to host",
        ),
    ),
    refusal(
        "a named gate of more streams than the service's profile works on",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              profile: latency
              gate: vllm-mxfp4-eight-streams
        hosts: {spark-1: {}}
        """,
        (
            8,
            "defaults.services.gpt-oss.gate",
            "gate vllm-mxfp4-eight-streams wants 8 streams at once, and the service works on 2 (max-num-seqs, profile "
            "latency): what waits for its turn is no measurement; use profile balanced or throughput, set "
            "flags.max-num-seqs to 8 or more, or take a gate of fewer streams",
        ),
    ),
    refusal(
        "workloads of more streams than the service's own flag allows",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              profile: throughput
              flags: {max-num-seqs: 4}
              gate:
                workload:
                  concurrency: [1, 8]
                random: {prompts: 64, concurrency: 64}
                sharegpt: {dataset: {file: lab-sharegpt.json, sha256: SHA}, concurrency: 32}
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """.replace("SHA", "941fd07dcdd8674b58ea9f1a432c339d8cb15bba1d0e3bf02a54e8ffc092d110"),
        (
            11,
            "defaults.services.gpt-oss.gate.workload.concurrency",
            "this wants 8 streams at once, and the service works on 4 (max-num-seqs, profile throughput): what waits "
            "for its turn is no measurement; set flags.max-num-seqs to 8 or more",
        ),
        (12, "defaults.services.gpt-oss.gate.random.concurrency", "this wants 64 streams at once"),
    ),
    refusal(
        "more streams than a llama.cpp service has slots",
        """\
        fleet: office
        defaults:
          services:
            gguf:
              engine: llama-cpp
              model: gpt-oss-120b-gguf
              profile: latency
              gate:
                workload: {concurrency: [4]}
                thresholds: {pp2048 c4: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (
            9,
            "defaults.services.gguf.gate.workload.concurrency",
            "the service works on 1 (parallel, profile latency): what waits for its turn is no measurement; use "
            "profile balanced or throughput",
        ),
    ),
    refusal(
        "a relative bound on a workload of one run",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                random: {prompts: 8}
                thresholds:
                  random output throughput: {last_good: {fail: 0.1}}
        hosts: {spark-1: {}}
        """,
        (
            10,
            "defaults.services.gpt-oss.gate.thresholds.random output throughput",
            "random makes one run, which has no spread to compare by",
        ),
    ),
    refusal(
        "answers that there are not",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                answers: gpt-os
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.gate.answers", "unknown answers 'gpt-os'"),
    ),
    refusal(
        "a dataset that is not there",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                sharegpt:
                  dataset:
                    file: conversations.json
                    sha256: 0000000000000000000000000000000000000000000000000000000000000000
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (10, "defaults.services.gpt-oss.gate.sharegpt.dataset.file", "no such file"),
    ),
    refusal(
        "a question that checks nothing",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                answers:
                  source: ours
                  questions: {hello: {prompt: Hello}}
                thresholds: {pp2048 c1: {min: 1}}
        hosts: {spark-1: {}}
        """,
        (10, "defaults.services.gpt-oss.gate.answers.questions.hello", "give at least one check"),
    ),
    refusal(
        "a threshold without a bound",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-120b
              gate:
                thresholds:
                  tg128@pp2048 c1: {}
        hosts: {spark-1: {}}
        """,
        (9, "defaults.services.gpt-oss.gate.thresholds.tg128@pp2048 c1", "give at least one of min, max"),
    ),
    refusal(
        "a simulated host that is not on loopback",
        """\
        fleet: office
        hosts:
          spark-1:
            address: 10.0.0.11
            settings: {hardware: {simulated: true}}
        """,
        (5, "hosts.spark-1.settings.hardware.simulated", "only a host on loopback can be simulated, not 10.0.0.11"),
    ),
    refusal(
        "unknown group",
        """\
        fleet: office
        groups:
          big-memory: {weights: {workers: 4}}
        hosts:
          spark-1:
            groups:
              - big-memory
              - bigmemory
        """,
        (8, "hosts.spark-1.groups[1]", "unknown group 'bigmemory'; did you mean big-memory?"),
    ),
    refusal(
        "unknown group where there are none",
        """\
        fleet: office
        hosts: {spark-1: {groups: [big]}}
        """,
        (2, "hosts.spark-1.groups[0]", "unknown group 'big'; there are no groups here"),
    ),
    refusal(
        "a group's name that pyinfra gives away",
        """\
        fleet: office
        groups: {all: {}}
        hosts: {spark-1: {}}
        """,
        (2, "groups.all", "the name all is taken: pyinfra gives it to every host; choose another name"),
    ),
    refusal(
        "a group that is named like a host",
        """\
        fleet: office
        groups: {spark-1: {}}
        hosts: {spark-1: {}}
        """,
        (2, "groups.spark-1", "the name spark-1 is taken: a host has it (line 3); choose another name"),
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
        "versions that are none",
        """\
        fleet: office
        defaults:
          hardware: {driver: latest}
          cuda: {version: newest}
          runtime: {container_toolkit_version: "1.18 or later"}
        hosts: {spark-1: {}}
        """,
        (3, "defaults.hardware.driver", "has not the right form; write a driver's version or its beginning, as in 580"),
        (4, "defaults.cuda.version", "has not the right form; write a package's version, or its beginning with a star"),
        (5, "defaults.runtime.container_toolkit_version", "has not the right form; write a package's version"),
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
        "an error in a group that no host uses",
        """\
        fleet: office
        groups:
          unused:
            weights: {home: relative/path}
        hosts: {spark-1: {}}
        """,
        (4, "groups.unused.weights.home", "has not the right form; write an absolute path without spaces"),
    ),
    refusal(
        "an error that every host's own settings hide",
        """\
        fleet: office
        defaults:
          weights: {workers: 0}
        hosts:
          spark-1: {settings: {weights: {workers: 4}}}
        """,
        (3, "defaults.weights.workers", "out of range: must be at least 1"),
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
    refusal("empty fleet", "fleet: office\nhosts: {}\n", (2, "hosts", "the fleet is empty; add a host")),
    refusal("hosts with nothing behind it", "fleet: office\nhosts:\n", (2, "hosts", "the fleet is empty; add a host")),
    refusal("no hosts", "fleet: office\n", (1, "hosts", "the fleet is empty; add a host")),
    refusal("hosts as a list", "fleet: office\nhosts: [spark-1]\n", (2, "hosts", "not a mapping; write `key: value`")),
    refusal("a host as text", "fleet: office\nhosts:\n  spark-1: here\n", (3, "hosts.spark-1", "not a mapping")),
    refusal("no name", "hosts: {spark-1: {}}\n", (1, "fleet", "missing; add this key")),
    refusal(
        "names that do not fit",
        """\
        fleet: My Fleet
        hosts:
          spark_1: {}
        """,
        (1, "fleet", "has not the right form; write two or more lower-case letters"),
        (3, "hosts.spark_1", "has not the right form; write letters, digits, dots and dashes"),
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
        "an address with its port",
        """\
        fleet: office
        hosts: {spark-1: {address: "10.0.0.11:22"}}
        """,
        (2, "hosts.spark-1.address", "not an address; write it without a port, which goes under ssh: {port: 22}"),
    ),
    refusal(
        "numbers with units, and a toolkit that is none",
        """\
        fleet: office
        defaults:
          hardware: {memory_gib: 115GiB}
          cuda: {package: cuda}
        hosts: {spark-1: {}}
        """,
        (3, "defaults.hardware.memory_gib", "not a number; write a number, without a unit"),
        (4, "defaults.cuda.package", "as in cuda-toolkit-13-0"),
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
        "a warning behind its failure",
        """\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm
              model: gpt-oss-20b
              gate:
                workload: {pp: [512], tg: [0]}
                thresholds:
                  pp512 c1: {min: 50, warn_min: 40}
                  ttfr@pp512 c1: {min: 50, max: 40}
        hosts: {spark-1: {}}
        """,
        (8, "defaults.services.gpt-oss.gate.workload.tg", "out of range; each must be at least 1"),
        (10, "defaults.services.gpt-oss.gate.thresholds.pp512 c1.warn_min", "failed by min already; make warn_min"),
        (11, "defaults.services.gpt-oss.gate.thresholds.ttfr@pp512 c1.min", "at most max; make min smaller than max"),
    ),
    refusal(
        "an address with the width of its network",
        """\
        fleet: office
        hosts: {spark-1: {address: "10.0.0.11/24"}}
        """,
        (2, "hosts.spark-1.address", "has not the right form; write a host name or an IP address without a port"),
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
    refusal(
        "many at once, in the order of their lines",
        """\
        flet: office
        defaults:
          hardwear: {}
          services:
            gpt-oss:
              engine: vlm
              model: gpt-oss-120b
              port: 99999
        hosts:
          spark-1: {groups: [none]}
        """,
        (1, "fleet", "missing"),
        (1, "flet", "unknown key; did you mean fleet?"),
        (3, "defaults.hardwear", "unknown key; did you mean hardware?"),
        (6, "defaults.services.gpt-oss.engine", "unknown engine 'vlm'"),
        (8, "defaults.services.gpt-oss.port", "out of range"),
        (10, "hosts.spark-1.groups[0]", "unknown group 'none'"),
    ),
)


def problems_of(path: Path) -> list[str]:
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_refusal_names_file_line_key_and_remedy(case: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fleet.yaml"
    path.write_text(case.text)

    lines = problems_of(path)

    places = [line.split(": ")[:2] for line in lines]
    assert places == [[f"fleet.yaml:{line}", key] for line, key, _ in case.told], "\n".join(lines)
    for line, (_, _, words) in zip(lines, case.told, strict=True):
        assert words in line
        assert "; " in line


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", 1, "the file is empty"),
        (b"# nothing yet\n\n", 1, "the file is empty"),
        (b"- spark-1\n- spark-2\n", 1, "not a mapping"),
        (b"just words\n", 1, "not a mapping"),
        (b"fleet: office\nhosts: {spark-1: {}\n", 3, "no valid YAML"),
        (b"fleet: office\nhosts:\n\tspark-1: {}\n", 3, "a tab stands here; indent with spaces"),
        (b"fleet: office\nhosts: *none\n", 2, "no valid YAML"),
        (b"fleet: office\n---\nfleet: other\n", 2, "no valid YAML"),
        (b"fleet: caf\xe9\n", 1, "not UTF-8"),
        (b"fleet: office\n\x7fELF\x02\x01\x01\x00\x00\n", 2, "NUL byte"),
        (b"\x7fELF\xff\xfe\x00\x00", 1, "not UTF-8"),
        (b"[" * 20_000, 1, "no valid YAML"),
        (b"fleet: {a: " + b"{a: " * 400 + b"1" + b"}" * 401 + b"\n", 1, "nested too deep"),
        (b"fleet: &loop {again: *loop}\nhosts: {spark-1: {}}\n", 1, "contains itself"),
        (b"? [a, b]\n: c\nfleet: office\n", 1, "a key must be text"),
        (b"base: &base {fleet: office}\n<<: *base\nhosts: {spark-1: {}}\n", 2, "merge keys are not read; use groups"),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
)
def test_file_that_is_no_fleet_file_is_refused_with_a_line(
    content: bytes, line: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(content)

    told = problems_of(path)

    assert any(text.startswith(f"{path}:{line}: ") and words in text for text in told), told


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    path = tmp_path / "fleet.yaml"
    path.write_text("\n".join(lines))

    assert "use fewer aliases" in problems_of(path)[0]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("FROM {{ base }}\nRUN git fetch {{ pins.vllm.commit }}\n", "has no attribute 'vllm'; correct the template"),
        ("FROM {{ base \n", "mine can not be rendered: "),
        (b"FROM \xff\n", "can't decode byte 0xff"),
    ],
    ids=["wants what is not there", "syntax", "no text"],
)
def test_an_own_template_that_can_not_be_rendered_is_refused(template: str | bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.Dockerfile.j2").write_bytes(template if isinstance(template, bytes) else template.encode())
    path = tmp_path / "fleet.yaml"
    recipe = "{template: ./mine.Dockerfile.j2, base: ubuntu, size_gib: 1, source: ours}"
    service = f"{{engine: vllm, model: gpt-oss-120b, image: {{recipe: {recipe}}}}}"
    path.write_text(f"fleet: office\ndefaults:\n  services:\n    gpt-oss: {service}\nhosts: {{spark-1: {{}}}}\n")

    (told,) = problems_of(path)

    assert told.startswith(f"{path}:4: defaults.services.gpt-oss.image.recipe.template: ")
    assert words in told


def test_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    assert "none.yaml: no such file; check the path, or TINDERBOX_FLEET" in problems_of(tmp_path / "none.yaml")[0]
    assert "this is a folder" in problems_of(tmp_path)[0]


def test_good_file_with_one_letter_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD)
    assert load_fleet(path).hosts["spark-1"].address == "10.0.0.11"

    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("address", "addres"))
    assert "did you mean address?" in problems_of(other)[0]

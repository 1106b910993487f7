"""What a fleet file must not say of gates: thresholds, workloads, answers, datasets."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
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
)

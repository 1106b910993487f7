"""What a fleet file must not say of a host's settings apart from its services."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

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
        "unknown key like none: all are named",
        """\
        fleet: office
        defaults: {weights: {zzz: 1}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.weights.zzz", "unknown key; known keys: home, remove_unneeded, spread, workers"),
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
        "another GPU's architecture",
        """\
        fleet: office
        defaults: {cuda: {architecture: 12.0f}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.cuda.architecture", "12.0f is not the GB10's architecture; use 12.1f"),
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
        "an operating system as it can not be",
        """\
        fleet: office
        defaults:
          system:
            swappiness: 300
            clock_cap_mhz: 20
            desktop: on
            earlyom: true
        hosts: {spark-1: {}}
        """,
        (4, "defaults.system.swappiness", "must be at most 200"),
        (5, "defaults.system.clock_cap_mhz", "must be at least 300"),
        (6, "defaults.system.desktop", "no desktop is started for you; write false for none"),
        (7, "defaults.system.earlyom", "unknown key; did you mean earlyoom?"),
    ),
)

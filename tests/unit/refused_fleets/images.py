"""What a fleet file must not say of images: recipes, pins, triples."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
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
        "an image that is present, without its id",
        """\
        fleet: office
        defaults:
          services:
            chat:
              engine: vllm
              model: gpt-oss-20b
              image:
                recipe:
                  reference: vllm-node:latest
                  present: true
                  source: ours
        hosts: {spark-1: {}}
        """,
        (
            10,
            "defaults.services.chat.image.recipe.present",
            "an image that is present is named by reference, and its id by digest",
        ),
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
)

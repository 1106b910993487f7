"""What ships with the project: engines, models, images, gates, what is known of failures, and whatever else is data."""

from __future__ import annotations

import re

from pydantic import model_validator

from modules.spec.answers import Answers
from modules.spec.base import Name, Strict, broken_rule
from modules.spec.baseline import Baseline
from modules.spec.engine import Engine, FlagValue, KnownFlags
from modules.spec.explanation import Explanation
from modules.spec.fabric_figures import FabricFigures
from modules.spec.finding import KnownFinding
from modules.spec.gate import Gate
from modules.spec.image import Recipe
from modules.spec.model import Encoding, Model
from modules.spec.network import AptRepository
from modules.spec.signature import Signature


class Catalog(Strict):
    """All entries by name. `encodings` by file name, `flags` by engine."""

    engines: dict[Name, Engine]
    flags: dict[Name, KnownFlags]
    models: dict[Name, Model]
    images: dict[Name, Recipe]
    encodings: dict[str, Encoding]
    gates: dict[Name, Gate]
    answers: dict[Name, Answers]
    baselines: dict[Name, Baseline]
    repositories: dict[Name, AptRepository]
    signatures: dict[Name, Signature]
    explanations: dict[Name, Explanation]
    findings: dict[Name, KnownFinding]
    fabrics: dict[Name, FabricFigures]

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Catalog:
        for name, engine in self.engines.items():
            if engine.recipe not in self.images:
                raise broken_rule(f"no image {engine.recipe!r}", "engines", name, "recipe")
        for name, model in self.models.items():
            for encoding in model.encodings:
                if encoding not in self.encodings:
                    raise broken_rule(f"no encoding {encoding!r}", "models", name, "encodings")
        for name, gate in self.gates.items():
            if isinstance(gate.answers, str) and gate.answers not in self.answers:
                raise broken_rule(f"no answers {gate.answers!r}", "gates", name, "answers")
        return self

    @model_validator(mode="after")
    def _engines_know_their_flags(self) -> Catalog:
        for name, engine in self.engines.items():
            if name not in self.flags:
                raise broken_rule("its flags are not known", "flags", name)
            known = self.flags[name]
            for word in engine.command:
                if word.startswith("--") and not known.knows(word[2:]):
                    raise broken_rule(f"the engine knows no flag {word}", "engines", name, "command")
            spread = engine.multi_node
            spanning = [] if spread is None else [("multi_node", {**spread.flags, **spread.worker_flags})]
            named = [("flags", engine.flags), *engine.profiles.items(), *engine.speculative.items(), *spanning]
            for where, flags in named:
                for flag in flags:
                    if not known.knows(flag):
                        raise broken_rule(f"the engine knows no flag --{flag}", "engines", name, where, flag)
            if strange := known.numbers - known.names:
                raise broken_rule(f"numbers of no flag: {', '.join(sorted(strange))}", "flags", name, "numbers")
        return self

    @model_validator(mode="after")
    def _models_ask_for_what_engines_know(self) -> Catalog:
        for name, model in self.models.items():
            for engine, flags in model.flags.items():
                if engine not in self.engines:
                    raise broken_rule(f"no engine {engine!r}", "models", name, "flags", engine)
                for flag, value in flags.items():
                    if fault := flag_fault(self.flags[engine], flag, value):
                        raise broken_rule(fault, "models", name, "flags", engine, flag)
        return self

    @model_validator(mode="after")
    def _default_pins_are_a_triple(self) -> Catalog:
        for name, recipe in self.images.items():
            commits = {pin: tree.commit for pin, tree in recipe.pins.items()}
            same = [
                triple for triple in recipe.triples.values() if (triple.commits, triple.base) == (commits, recipe.base)
            ]
            if recipe.triples and not same:
                raise broken_rule("pins and base are of none of the recipe's triples", "images", name, "pins")
        return self

    @model_validator(mode="after")
    def _expressions_compile(self) -> Catalog:
        for name, signature in self.signatures.items():
            for pattern in signature.patterns:
                _compiles(pattern, "signatures", name, "patterns")
        for name, explanation in self.explanations.items():
            for pattern in explanation.log:
                _compiles(pattern, "explanations", name, "log")
        for name, engine in self.engines.items():
            for pattern in (engine.process, *engine.readiness.wanted_log, *engine.readiness.refused_log):
                _compiles(pattern, "engines", name)
        return self


def flag_fault(known: KnownFlags, flag: str, value: FlagValue) -> str | None:
    """What the engine's program would not take of a flag; None: nothing that is known here."""
    if not known.knows(flag):
        return f"the engine knows no flag --{flag}"
    values = known.values.get(flag)
    if values is not None and isinstance(value, str) and value not in values:
        return f"--{flag} does not take {value!r}"
    return f"--{flag} takes a number, and {value!r} is none" if known.lacks_number(flag, value) else None


def _compiles(pattern: str, *key: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise broken_rule(f"{pattern!r} is no regular expression: {error}", *key) from None

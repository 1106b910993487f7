"""Text for benchmark prompts: plain English, new for every run, so that no prefix cache has seen any of it."""

from __future__ import annotations

import random

_SUBJECTS = (
    "the harbour master|a young surveyor|our neighbour|the last train|an old orchard|the committee|a patient clerk|"
    "the northern road|her brother|the printing press|a flock of geese|the lighthouse|every apprentice|the river|"
    "a retired pilot|the glass factory|some visitor|the village school|a quiet engineer|the morning market"
)
_VERBS = (
    "watched|repaired|described|carried|measured|forgot|painted|followed|borrowed|counted|remembered|questioned|"
    "exchanged|sheltered|delivered|examined|announced|restored|ignored|sketched"
)
_OBJECTS = (
    "a wooden bridge|the winter accounts|three brass keys|the letters from abroad|a leaking roof|the old timetable|"
    "several maps|a basket of pears|the broken clock|an unfinished chapter|the coastal signals|a bundle of wires|"
    "the narrow staircase|two silver coins|a field of barley|the missing index|a rusted engine|the long ledger"
)
_ENDINGS = (
    "before the rain came|without saying why|for the second time that year|while the lamps were lit|near the quarry|"
    "as the bells rang|in spite of the cold|until the ferry left|with unusual care|under a pale sky|"
    "because nobody had asked|after supper|on the way to the station|at the edge of the forest|against all advice"
)
_PARTS = tuple(part.split("|") for part in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))


def prose(tokens: int, seed: int) -> str:
    """At least `tokens` tokens of text (a word here is one token or more); the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311, nothing secret
    sentences, words = [], 0
    while words < tokens:
        subject, verb, thing, ending = (chance.choice(part) for part in _PARTS)
        sentence = f"{subject} {verb} {thing} {ending}, number {chance.randrange(10_000)}."
        sentences.append(sentence[0].upper() + sentence[1:])
        words += sentence.count(" ") + 1
    return " ".join(sentences) + "\n"

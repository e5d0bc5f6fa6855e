"""A script for the chat model of enrichment: extractions one after the other, and matches of names."""

from __future__ import annotations

import json

from recollect.core.knowledge.entities import AnyNameMatches
from recollect.core.knowledge.extractions import AnyExtraction


def entity(name, kind="person", *aliases, description=""):
    return {"name": name, "type": kind, "aliases": list(aliases), "description": description}


def fact(subject, predicate, object_, valid_at=None, invalid_at=None, replaces=()):
    text = f"{subject} {predicate} {object_}."
    return {
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "text": text,
        "valid_at": valid_at,
        "invalid_at": invalid_at,
        "replaces": list(replaces),
    }


class Script:
    """Extractions one after the other, and matches as they are set."""

    def __init__(self):
        self.extractions, self.matches, self.asked = [], {"matches": []}, []

    def __call__(self, prompt, answer):
        self.asked.append((answer, prompt))
        if answer is AnyNameMatches:
            return self.matches if isinstance(self.matches, str) else json.dumps(self.matches)
        assert answer is AnyExtraction
        return self.extractions.pop(0)

    def extraction(self, entities, facts=()):
        parts = {"summary": "They talk.", "label": "Talk", "paths": [], "importance": 7, "keywords": []}
        self.extractions.append(json.dumps(parts | {"entities": list(entities), "facts": list(facts)}))

    def count(self, answer):
        return sum(asked is answer for asked, _ in self.asked)

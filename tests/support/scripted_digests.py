"""A script for the chat model of enrichment: digests one after the other, and matches of names."""

from __future__ import annotations

import json

from recollect.core.knowledge.digests import AnyDigest
from recollect.core.knowledge.entities import AnyNameMatches


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
    """Digests one after the other, and matches as they are set."""

    def __init__(self):
        self.digests, self.matches, self.asked = [], {"matches": []}, []

    def __call__(self, prompt, answer):
        self.asked.append((answer, prompt))
        if answer is AnyNameMatches:
            return self.matches if isinstance(self.matches, str) else json.dumps(self.matches)
        assert answer is AnyDigest
        return self.digests.pop(0)

    def digest(self, entities, facts=()):
        parts = {"summary": "They talk.", "label": "Talk", "paths": [], "importance": 7, "keywords": []}
        self.digests.append(json.dumps(parts | {"entities": list(entities), "facts": list(facts)}))

    def count(self, answer):
        return sum(asked is answer for asked, _ in self.asked)

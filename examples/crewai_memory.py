"""CrewAI's memory on Recollect: scopes, categories and vectors are CrewAI's own, the records are also recalled here.

A scripted model and an embedder by words stand in for real ones: nothing but Recollect is asked over the network.

Run: uv run --project integrations/crewai python examples/crewai_memory.py
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from typing import Any
from uuid import uuid4

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import MemoryAnalysis
from crewai.memory.unified_memory import Memory
from recollect_crewai import RecollectStorage

from recollect.sync import connect

DIMENSIONS = 64


class ScriptedModel(BaseLLM):
    """A model that files everything about food under /diet, and everything else under /work."""

    def call(self, messages: Any, *_: Any, **__: Any) -> MemoryAnalysis:  # noqa: ANN401 - CrewAI's own
        """Say where a memory belongs."""
        food = "eat" in str(messages[-1]["content"])
        scope, category = ("/diet", "food") if food else ("/work", "office")
        return MemoryAnalysis(suggested_scope=scope, categories=[category], importance=0.9 if food else 0.3)

    def supports_function_calling(self) -> bool:
        """Give answers as values, not as text."""
        return True


def embed(texts: list[str]) -> list[list[float]]:
    """Embed by words: texts that share some are near to each other."""
    return [embed_one(text) for text in texts]


def embed_one(text: str) -> list[float]:
    """Add up a direction for every word."""
    vector = [0.001] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 1
    length = math.hypot(*vector)
    return [number / length for number in vector]


def main() -> None:
    """Remember by CrewAI, recall by CrewAI, then by Recollect itself."""
    set_suppress_console_output(True)
    with connect(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]) as recollect:
        mind = recollect.mind("crew", f"team-{uuid4().hex[:8]}")
        memory = Memory(storage=RecollectStorage(mind), llm=ScriptedModel(model="scripted"), embedder=embed)
        for text in ("Li must not eat peanuts.", "The office moves to Rome in May.", "Mei likes to eat curry."):
            memory.remember(text)
        for record in reversed(memory.list_records()):
            print(f"{record.scope:6} {record.categories}  {record.content}")
        for match in memory.recall("What must Li not eat?", scope="/diet", depth="shallow", limit=2):
            print(f"CrewAI recalls    {match.score:.2f}  {match.record.content}")
        hit = mind.recall("Which allergies are there?", limit=1).hits[0]
        print(f"Recollect recalls {hit.score:.2f}  {hit.memory.content}")
        mind.forget([hit.memory.id])
        print(f"forgotten; left in /diet: {[record.content for record in memory.list_records('/diet')]}")
        memory.close()


if __name__ == "__main__":
    main()

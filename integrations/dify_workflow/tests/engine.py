"""Runs a workflow file in graphon, the engine that Dify runs its workflows in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from graphon.dsl import loads
from graphon.engine_events import GraphRunPartialSucceededEvent, GraphRunSucceededEvent

WORKFLOWS = Path(__file__).parents[2] / "dify" / "workflows"
FILE = WORKFLOWS / "memory_retrieval.yml"
WORKERS = 1
"""The nodes follow each other, so one thread runs them; the others would only ask each other for work."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: what it handed over, and which nodes were run in which order."""

    outputs: Mapping[str, Any]
    nodes: list[str]
    partial: bool


@cache
def read() -> str:
    """Read the file once; as JSON, which is YAML that is quickly written and read."""
    return json.dumps(yaml.safe_load(FILE.read_text(encoding="utf-8")), ensure_ascii=False)


def configured(url: str, key: str) -> str:
    """Set the two variables, as one does in Dify after the import."""
    whole = json.loads(read())
    values = {"RECOLLECT_URL": url, "RECOLLECT_KEY": key}
    for variable in whole["workflow"]["environment_variables"]:
        variable["value"] = values.pop(variable["name"])
    assert values == {}
    return json.dumps(whole, ensure_ascii=False)


def run(dsl: str, sandbox: str, inputs: Mapping[str, Any]) -> Ran:
    """Run a workflow to its end; a run that fails raises what graphon raises."""
    place = {"code": {"execution_endpoint": sandbox}}
    engine = loads(dsl, start_inputs=inputs, credentials=place, workers=WORKERS)
    nodes: list[str] = []
    for event in engine.run():
        if isinstance(event, GraphRunSucceededEvent | GraphRunPartialSucceededEvent):
            return Ran(event.outputs, nodes, isinstance(event, GraphRunPartialSucceededEvent))
        if type(event).__name__ in {"NodeRunSucceededEvent", "NodeRunExceptionEvent"}:
            nodes.append(event.node_id)
    raise AssertionError("the run came to no end")

"""Write memory_retrieval.yml, the workflow "Memory Retrieval" as Dify imports it, from the two Code nodes beside it."""

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
VERSION = "0.3.1"
"""Of the DSL: Dify takes files of older versions, and asks back about newer ones."""
VARIABLES = (
    ("persona_name", "text-input", True, None),
    ("focal_text", "paragraph", True, None),
    ("top_k", "number", False, 30),
    ("recency_w", "number", False, 1.0),
    ("relevance_w", "number", False, 1.0),
    ("importance_w", "number", False, 1.0),
    ("recency_decay", "number", False, 0.99),
    ("user", "text-input", False, None),
    ("recency_mode", "select", False, "original"),
)
LENGTHS = {"persona_name": 128, "focal_text": 8000, "user": 128}
OUTPUTS = {
    "retrieved_nodes": "array[object]",
    "accessed_ids": "array[string]",
    "status": "string",
    "message": "string",
    "debug": "object",
}
ENVIRONMENT = (
    ("RECOLLECT_URL", "string", "http://host.docker.internal:7077", "Where Recollect answers, without a path."),
    ("RECOLLECT_KEY", "secret", "", "A key of Recollect's with the right to read."),
)
Node = dict[str, Any]


def start() -> Node:
    """Ask for what document 000 asks for, and for whom the memory is about, if anybody."""
    variables = [
        {
            "variable": name,
            "label": name,
            "type": kind,
            "required": required,
            "max_length": LENGTHS.get(name),
            "options": ["original", "newest"] if kind == "select" else [],
            **({} if usual is None else {"default": usual}),
        }
        for name, kind, required, usual in VARIABLES
    ]
    return {"variables": variables}


def code(source: str, inputs: dict[str, str], outputs: dict[str, str]) -> Node:
    """Run Python in Dify's sandbox."""
    return {
        "code_language": "python3",
        "code": source,
        "variables": [{"variable": name, "value_selector": [node, name]} for name, node in inputs.items()],
        "outputs": {name: {"type": kind, "children": None} for name, kind in outputs.items()},
    }


def search() -> Node:
    """Ask the server; a failure goes on along a branch of its own instead of ending the run."""
    return {
        "method": "post",
        "url": "{{#env.RECOLLECT_URL#}}/v1/recall",
        "authorization": {
            "type": "api-key",
            "config": {"type": "bearer", "api_key": "{{#env.RECOLLECT_KEY#}}", "header": ""},
        },
        "headers": "Content-Type:application/json",
        "params": "",
        # As raw text: the mode "json" would repair, and so spoil, what is JSON already.
        "body": {"type": "raw-text", "data": [{"key": "", "type": "text", "value": "{{#build.body#}}"}]},
        "timeout": {"connect": 10, "read": 60, "write": 60},
        "retry_config": {"retry_enabled": True, "max_retries": 1, "retry_interval": 500},
        "error_strategy": "fail-branch",
        "ssl_verify": True,
        "variables": [],
    }


def choose(selector: list[str], operator: str, values: dict[str, str]) -> Node:
    """Part ways by one variable; the way "false" is left for the rest."""
    cases = [
        {
            "id": name,
            "case_id": name,
            "logical_operator": "and",
            "conditions": [
                {
                    "id": f"{name}_condition",
                    "variable_selector": selector,
                    "varType": "string",
                    "comparison_operator": operator,
                    "value": value,
                }
            ],
        }
        for name, value in values.items()
    ]
    return {"cases": cases}


def end() -> Node:
    """Hand everything over, whichever way it came."""
    outputs = [
        {"variable": name, "value_selector": ["shape", name], "value_type": kind} for name, kind in OUTPUTS.items()
    ]
    return {"outputs": outputs}


def draw(build: str, shape: str) -> list[tuple[str, str, str, tuple[int, int], Node]]:
    """List the nodes: id, type, title, place, and what each holds."""
    asked = {name: "start" for name, *_ in VARIABLES}
    answered = {"problem": "build", "body": "search", "error_message": "search"}
    return [
        ("start", "start", "Start", (0, 200), start()),
        ("build", "code", "Build request", (300, 200), code(build, asked, {"body": "string", "problem": "string"})),
        ("check", "if-else", "Is the input fine?", (600, 200), choose(["build", "problem"], "empty", {"true": ""})),
        ("search", "http-request", "Recall", (900, 100), search()),
        ("shape", "code", "Shape result", (1200, 200), code(shape, answered, OUTPUTS)),
        (
            *("status", "if-else", "Which status?", (1500, 200)),
            choose(["shape", "status"], "is", {"ok": "ok", "no_candidates": "no_candidates"}),
        ),
        ("end_ok", "end", "Retrieved", (1800, 50), end()),
        ("end_no_candidates", "end", "No candidates", (1800, 200), end()),
        ("end_error", "end", "Error", (1800, 350), end()),
    ]


EDGES = (
    ("start", "source", "build"),
    ("build", "source", "check"),
    ("check", "true", "search"),
    ("check", "false", "shape"),
    ("search", "source", "shape"),
    ("search", "fail-branch", "shape"),
    ("shape", "source", "status"),
    ("status", "ok", "end_ok"),
    ("status", "no_candidates", "end_no_candidates"),
    ("status", "false", "end_error"),
)


def lay_out(build: str, shape: str) -> Node:
    """Join nodes and edges as Dify's editor keeps them."""
    drawn = draw(build, shape)
    types = {name: kind for name, kind, *_ in drawn}
    nodes = [
        {
            "id": name,
            "type": "custom",
            "data": {"type": kind, "title": title, "desc": "", "selected": False, **data},
            "position": {"x": x, "y": y},
            "positionAbsolute": {"x": x, "y": y},
            "sourcePosition": "right",
            "targetPosition": "left",
            "height": 90,
            "width": 244,
        }
        for name, kind, title, (x, y), data in drawn
    ]
    edges = [
        {
            "id": f"{source}-{handle}-{target}-target",
            "type": "custom",
            "source": source,
            "sourceHandle": handle,
            "target": target,
            "targetHandle": "target",
            "zIndex": 0,
            "data": {"sourceType": types[source], "targetType": types[target], "isInIteration": False},
        }
        for source, handle, target in EDGES
    ]
    return {"nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 0.7}}


def generate(build: str, shape: str) -> str:
    """Write the file, given the sources of the two Code nodes."""
    app = {
        "name": "Memory Retrieval",
        "mode": "workflow",
        "description": "What comes to a persona's mind: by recency, relevance and importance, from Recollect.",
        "icon": "🧠",
        "icon_background": "#E4FBCC",
        "use_icon_as_answer_icon": False,
    }
    environment = [
        {
            "id": f"7d1c0f52-6d0c-4b36-9a51-00000000000{place}",
            "name": name,
            "value": value,
            "value_type": kind,
            "selector": ["env", name],
            "description": description,
        }
        for place, (name, kind, value, description) in enumerate(ENVIRONMENT, start=1)
    ]
    workflow = {
        "conversation_variables": [],
        "environment_variables": environment,
        "features": {"file_upload": {"enabled": False}},
        "graph": lay_out(build, shape),
    }
    whole = {"version": VERSION, "kind": "app", "dependencies": [], "app": app, "workflow": workflow}
    return yaml.dump(whole, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=120)


class Dumper(yaml.SafeDumper):
    """Writes programs as they are, line by line, and everything once, without references."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as the parent has it
        """Write a value again where it is used again."""
        return True


def write_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """Keep the lines of a program apart."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, write_text)

if __name__ == "__main__":
    sources = [(HERE / name).read_text(encoding="utf-8") for name in ("build_request.py", "shape_result.py")]
    (HERE / "memory_retrieval.yml").write_text(generate(*sources), encoding="utf-8")

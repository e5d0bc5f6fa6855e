"""Why the scoring is not in a Code node: what Dify's engine lets through one, and what it does not."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

import pytest
import yaml
from engine import configured, run
from sandbox import Sandbox, listening

CODE = {"type": "code", "title": "Make", "code_language": "python3", "variables": []}


def make(kind, value):
    """Write a workflow whose Code node hands a value over."""
    data = {
        "start": {"type": "start", "title": "Start", "variables": []},
        "make": {
            **CODE,
            "code": f"def main():\n    return {{'made': {value}}}\n",
            "outputs": {"made": {"type": kind, "children": None}},
        },
        "end": {"type": "end", "title": "End", "outputs": [{"variable": "made", "value_selector": ["make", "made"]}]},
    }
    nodes = [{"id": name, "type": "custom", "data": each} for name, each in data.items()]
    edges = [
        {"id": f"{source}-{target}", "source": source, "sourceHandle": "source", "target": target}
        for source, target in (("start", "make"), ("make", "end"))
    ]
    app = {"name": "Limits", "mode": "workflow"}
    return yaml.safe_dump(
        {"version": "0.3.1", "kind": "app", "app": app, "workflow": {"graph": {"nodes": nodes, "edges": edges}}}
    )


@pytest.mark.parametrize(
    ("kind", "item", "most"),
    [("array[object]", "{'id': '1'}", 30), ("array[string]", "'1'", 30), ("array[number]", "0.5", 1000)],
)
def test_a_code_node_hands_so_much_over_and_no_more(kind, item, most, sandbox):
    assert len(run(make(kind, f"[{item}] * {most}"), sandbox, {}).outputs["made"]) == most
    with pytest.raises(RuntimeError, match=f"less than {most} elements"):
        run(make(kind, f"[{item}] * {most + 1}"), sandbox, {})


@pytest.mark.parametrize(("size", "said"), [(2**20, "is not Recollect"), (2**20 + 1, "choose a smaller top_k")])
def test_an_http_node_reads_a_mebibyte_and_no_more(size, said, sandbox):
    class Large(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            Sandbox.answer(self, 200, "x" * (size - 2))

        log_message = Sandbox.log_message

    with listening(Large) as url:
        ran = run(configured(url, "k"), sandbox, {"persona_name": "Isabella", "focal_text": "x"})
    assert said in ran.outputs["message"]

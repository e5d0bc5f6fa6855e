"""The workflow "Memory Retrieval", run three times by Dify's own engine without a Dify: usual, reweighed, refused.

Dify's engine is graphon; a server of 20 lines stands in for the sandbox that Dify runs Code nodes in.

Run: uv run --project integrations/dify_workflow python examples/dify_workflow.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import uuid4

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations" / "dify_workflow" / "tests"))

from engine import configured, run
from sandbox import Sandbox, listening

URL, KEY = os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]
DAY = "2026-02-13T{}:00+00:00"
SEEN = (
    ("08:00", "Isabella opens Hobbs Cafe and bakes bread", 2, {}),
    ("09:30", "Klaus Mueller promises to come to the Valentine's Day party", 6, {}),
    ("11:00", "the coffee machine is idle", 1, {"subject": "coffee machine", "predicate": "is", "object": "idle"}),
    ("13:10", "Maria Lopez asks who else is invited to the party", 5, {}),
    ("15:45", "Isabella breaks up with her boyfriend", 9, {}),
    ("17:20", "A customer orders an espresso", 1, {}),
)
ASKED = {"persona_name": "Isabella Rodriguez", "focal_text": 'Who comes to the "party"?', "user": uuid4().hex}


def remember() -> None:
    """Let Isabella live through a day."""
    memories = [
        {"content": content, "importance": importance, "occurred_at": DAY.format(hour), **triple}
        for hour, content, importance, triple in SEEN
    ]
    body = {"agent": "Isabella Rodriguez", "user": ASKED["user"], "memories": memories}
    headers = {"Authorization": f"Bearer {KEY}"}
    httpx.post(f"{URL}/v1/memories", json=body, headers=headers, timeout=60).raise_for_status()


def show(key: str, sandbox: str, **weights: float) -> None:
    """Run the workflow, and print what it hands over."""
    ran = run(configured(URL, key), sandbox, ASKED | weights)
    print(" -> ".join(ran.nodes))
    debug = ran.outputs["debug"]
    print(
        f"  status {ran.outputs['status']}, {debug['total_candidates']} candidates  {ran.outputs['message']}".rstrip()
    )
    for node in ran.outputs["retrieved_nodes"]:
        factors = ", ".join(f"{name} {node[name]:.2f}" for name in ("recency", "relevance", "importance"))
        print(f"  {node['score']:.2f}  {node['description']}  ({factors})")


if __name__ == "__main__":
    remember()
    with listening(Sandbox) as address:
        show(KEY, address, top_k=3)
        show(KEY, address, top_k=3, relevance_w=0.1, importance_w=2.0)
        show("rec_wrong", address)

"""The workflow's second Code node: turns the server's answer into the names of the original design, whatever it is."""

import json
import re

ADVICE = {
    401: "the server does not know this key: set RECOLLECT_KEY to one that `recollect admin keys create` made",
    403: "this key may not read this memory: use one with the right `read`, bound to nobody else",
    404: "there is no Recollect at this address: check RECOLLECT_URL, without a path behind it",
    413: "the request is too large: shorten focal_text",
    422: "the server refuses an input: check the numbers, and recency_mode",
    503: "the server cannot answer now: try again",
}
AWAY = "the server cannot be reached: check RECOLLECT_URL, and whether Recollect runs"
STRANGE = "what answers at RECOLLECT_URL is not Recollect: check the address"
NOBODY = "no candidate memories for this persona"


def give(status: str, message: str = "", nodes: tuple = (), accessed: tuple = (), tally: dict | None = None) -> dict:
    """Put the outputs together: the same names in every case."""
    tally = tally or {}
    debug = {
        "total_candidates": tally.get("candidates", 0),
        "retrieved_count": len(nodes),
        "min_score": round(tally.get("lowest") or 0.0, 9),
        "max_score": round(tally.get("highest") or 0.0, 9),
    }
    nodes, accessed = list(nodes), list(accessed)
    return {"retrieved_nodes": nodes, "accessed_ids": accessed, "status": status, "message": message, "debug": debug}


def shape(hit: dict) -> dict:
    """Turn a hit into a row of `memory_nodes` with its score and what the score is made of."""
    # What was found by words alone, because the cue could not be embedded, has a score and no factors.
    memory, found = hit["memory"], hit["channels"].get("stream", hit)
    factors = found.get("factors") or dict.fromkeys(("recency", "similarity", "importance"), 0.0)
    return {
        "id": memory["id"],
        "node_id": memory["id"],
        "type": memory["kind"],
        "created_at": memory["occurred_at"],
        "last_accessed": memory["last_accessed_at"],
        "description": memory["content"],
        "poignancy": memory["importance"],
        **memory["triple"],
        "keywords": memory["keywords"],
        "filling": memory["evidence"],
        "depth": memory["depth"],
        "score": round(found["score"], 9),
        "recency": round(factors["recency"], 9),
        "relevance": round(factors["similarity"], 9),
        "importance": round(factors["importance"], 9),
    }


def explain(failure: str) -> str:
    """Say what to do about a request that failed; Dify hands on no more than the status."""
    code = re.search(r"status code (\d+)", failure)
    if code is None:
        return f"{failure}: choose a smaller top_k" if "too large" in failure else f"{AWAY} ({failure})"
    return ADVICE.get(int(code[1]), f"the server answered with status {code[1]}")


def main(problem: str | None, body: str | None, error_message: str | None) -> dict:
    """Give retrieved_nodes, accessed_ids, status, message and debug."""
    if problem or error_message:
        return give("error", problem or explain(error_message))
    try:
        answer = json.loads(body or "")
        nodes = tuple(map(shape, answer["hits"]))
        status, message, accessed = answer["status"], answer["message"], answer["accessed"]
        tally = answer["tallies"].get("stream")
    except (AttributeError, KeyError, TypeError, ValueError):
        return give("error", STRANGE)
    return give(status, NOBODY if status == "no_candidates" else message, nodes, accessed, tally)

"""The workflow's first Code node: turns what was asked into the body of a recall, or says what is wrong with it."""

import hashlib
import json
import re
import unicodedata

PLAIN, QUOTED = re.compile(r"[A-Za-z0-9._:@-]"), "x:"
UNSEEN = re.compile(
    "[/\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd\U000e0100-\U000e01ef]"
)
MAX_NODES = 30
GAINS = [0.5, 3, 2]


def encode(field: str, name: str) -> str:
    """Return the name as every door writes it, of any script; a name that no scope can have is encoded."""
    name = " ".join(name.split()) if field == "agent" else name.strip()
    if name == "" or is_allowed(name):
        return name
    spelled = name.encode("utf-8", "surrogatepass")
    quoted = QUOTED + "".join(chr(b) if b != ord(":") and PLAIN.fullmatch(chr(b)) else f":{b:02X}" for b in spelled)
    return quoted if len(quoted) <= 128 else f"{QUOTED}{hashlib.sha256(spelled).hexdigest()}:"


def is_allowed(name: str) -> bool:
    """Tell whether a scope can have this name, of any script, and it is none that was encoded."""
    shown = name.isprintable() and name == " ".join(name.split()) and unicodedata.is_normalized("NFC", name)
    return shown and len(name) <= 128 and name.strip(".") != "" and not (name.startswith(QUOTED) or UNSEEN.search(name))


def take(value: object, usual: float) -> float:
    """Read a number as Dify hands it over: as itself, as text, or not at all."""
    return usual if value is None or value == "" else float(value)


def find_problem(name: str, text: str, numbers: list[float]) -> str:
    """Say what the server would refuse, in words for who filled in the form; nothing if all is well."""
    top_k, *weights, decay = numbers
    checks = (
        (name != "", "persona_name is empty: say whose memory it is"),
        (text.strip() != "", "focal_text is empty: say what to be reminded of"),
        (len(text) <= 8000, "focal_text is too long: 8,000 characters at most"),
        (top_k >= 1, "top_k must be 1 or more"),
        (all(0 <= weight <= 1000 for weight in weights), "recency_w, relevance_w and importance_w must be 0 to 1000"),
        (0 < decay <= 1, "recency_decay must be above 0, and 1 at most"),
    )
    return next((problem for fine, problem in checks if not fine), "")


def main(**asked: object) -> dict:
    """Give the body to send, and the problem that it would meet."""
    try:
        weights = [take(asked[name], 1) for name in ("recency_w", "relevance_w", "importance_w")]
        top_k, decay = take(asked["top_k"], 30), take(asked["recency_decay"], 0.99)
    except (TypeError, ValueError):
        return {"body": "", "problem": "top_k, the weights and recency_decay must be numbers"}
    agent, user = encode("agent", str(asked["persona_name"] or "")), encode("user", str(asked["user"] or ""))
    text = str(asked["focal_text"] or "")
    if problem := find_problem(agent, text, [top_k, *weights, decay]):
        return {"body": "", "problem": problem}
    body = {
        "agent": agent,
        "user": user,
        "text": text,
        "channels": ["stream"],
        "kinds": ["event", "thought"],
        "mode": asked["recency_mode"] or "original",
        "limit": int(min(top_k, MAX_NODES)),
        "recency": weights[0],
        "similarity": weights[1],
        "importance": weights[2],
        "gains": GAINS,
        "decay": decay,
    }
    return {"body": json.dumps(body), "problem": ""}

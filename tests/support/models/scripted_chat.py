"""A model endpoint on a real socket that follows a script: for processes that only a URL can reach.

With a `provider` it behaves as that one documents: path, key, limits, formats and error bodies.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.models.providers import Provider

ANSWERS = {
    "Questions": {"questions": ["What does Ann grow?"]},
    "Insights": {
        "insights": [
            {
                "text": "Ann is a gardener",
                "subject": "Ann",
                "predicate": "is",
                "object": "a gardener",
                "importance": 7,
                "notes": [1, 2],
            }
        ]
    },
}


@contextmanager
def chatting(
    *,
    nonsense: bool = False,
    first: Sequence[str] = (),
    usage: object = None,
    answering: Callable[[str, str], object] = lambda shape, _: ANSWERS[shape],
    provider: Provider | None = None,
) -> Iterator[str]:
    """Serve for the length of the block, saying some things first; yield the URL.

    `answering` is given the name of the asked shape and the prompt; a provider may be asked for no shape.
    """
    waiting = list(first)

    def say(question: dict[str, Any]) -> dict[str, object]:
        shape = question.get("response_format", {}).get("json_schema", {}).get("name", "")
        prompt = question["messages"][-1]["content"]
        content = "I would rather not." if nonsense else json.dumps(answering(shape, prompt))
        choice = {"message": {"content": waiting.pop(0) if waiting else content}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": usage}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = 200, None
            if provider is not None:
                status, answer = provider.answer(self.path, self.headers.get("Authorization", ""), question)
            body = json.dumps(say(question) if answer is None else answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{provider.base if provider else '/v1'}"
        finally:
            server.shutdown()
            thread.join()

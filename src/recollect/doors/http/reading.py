"""Read a request's body before its route does, and hand it on."""

from __future__ import annotations

from starlette.types import Message, Receive


async def read_body(receive: Receive) -> Message:
    """Read the whole body, which is within the limit that stands before this; or learn that the client has left."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return give_body(b"".join(pieces))


def give_body(body: bytes) -> Message:
    """Make the message that a whole body comes in."""
    return {"type": "http.request", "body": body, "more_body": False}


def replay(first: Message, receive: Receive) -> Receive:
    """Give a message that was read already, then whatever comes."""
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received

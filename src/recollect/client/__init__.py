"""The SDK: the verbs of a mind over HTTP."""

from recollect.client.client import Client, RemoteMind

__all__ = ["Client", "RemoteMind"]

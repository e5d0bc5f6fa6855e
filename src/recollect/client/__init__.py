"""The SDK: the verbs of a mind over HTTP."""

from recollect.client.client import Client
from recollect.client.mind import RemoteMind

__all__ = ["Client", "RemoteMind"]

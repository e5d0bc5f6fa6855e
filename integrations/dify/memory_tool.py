"""What all tools share: whose memory is meant, how the server is reached, and how a problem is told in one line."""

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.model import EmbeddingInputType as Use
from dify_plugin.entities.model.text_embedding import TextEmbeddingModelConfig
from dify_plugin.entities.tool import ToolInvokeMessage
from pydantic import TypeAdapter, ValidationError

from recollect.errors import InvalidInputError, RecollectError, UnauthenticatedError, UnavailableError
from recollect.models import Cue, Filter, Memory, is_scope_name
from recollect.sync import SyncClient, SyncConversation, SyncMind, connect

Given = dict[str, Any]
Answer = tuple[str, dict[str, Any]]  # text for a model to read, and variables for a workflow to go on with
LISTS = {"ids", "keywords", *(each.name for each in fields(Filter) if str(each.type).startswith("tuple"))}
PLAIN, QUOTED = re.compile(r"[A-Za-z0-9._:@-]{1,128}"), "x:"
SHOWN = {"id", "kind", "content", "speaker", "importance", "occurred_at", "conversation"}
REMEDIES = {UnauthenticatedError: "Enter a valid API key in the plugin's authorization."} | dict.fromkeys(
    (UnavailableError, RecollectError), "See that Recollect runs where the authorization's URL leads."
)


class MemoryTool(Tool):
    """A tool that does one thing with the memory of the app and the user it runs for."""

    @abstractmethod
    def _perform(self, mind: SyncMind, given: Given) -> Answer: ...

    def _invoke(self, tool_parameters: Given) -> Generator[ToolInvokeMessage, None, None]:
        try:
            given = {name: read(name, value) for name, value in tool_parameters.items() if value not in (None, "", {})}
            whose = scope_name("agent", given, self.session.app_id), scope_name("user", given, self.runtime.user_id)
            with reach(self.runtime.credentials) as memory:
                text, variables = self._perform(memory.mind(*whose), given)
        except (RecollectError, ValidationError) as problem:
            raise explain(problem) from None
        yield self.create_text_message(text)
        yield from (self.create_variable_message(*each) for each in ({"status": "ok"} | variables).items())

    def conversation(self, mind: SyncMind, given: Given) -> SyncConversation:
        """Choose the conversation that is named, or the one that Dify is in."""
        return mind.conversation(scope_name("conversation", given, self.session.conversation_id))

    def embed(self, given: Given, texts: list[str], use: Use = Use.DOCUMENT) -> list[Any]:
        """Let Dify's embedding model make the vectors if one was chosen; Recollect's own makes them otherwise."""
        if "embedding_model" not in given:
            return [None] * len(texts)
        model = TextEmbeddingModelConfig.model_validate(given["embedding_model"])
        try:
            return self.session.model.text_embedding.invoke(model, texts, use).embeddings
        except Exception as problem:  # the SDK has no class for it
            raise InvalidInputError(f"Dify's embedding model failed ({problem}): choose another, or none.") from None

    def cue(self, given: Given) -> Cue:
        """Make a cue from its text and what else was filled in."""
        (vector,) = self.embed(given, [given.get("cue", "")], Use.QUERY)
        return fill(Cue, given, text=given.get("cue", ""), embedding=vector)

    def once(self, given: Given) -> str:
        """Make the key by which the same write, asked again for the same message in Dify, is not done twice."""
        write = json.dumps([type(self).__name__, message := self.session.message_id, given], sort_keys=True)
        return hashlib.sha256(write.encode()).hexdigest() if message and "embedding_model" not in given else ""


def read(name: str, value: object) -> object:
    """Take a list also as JSON, or as words between commas: a text field can hold nothing else."""
    if name not in LISTS or not isinstance(value, str):
        return value
    words = [each.strip("[]\"' \n") for each in value.split(",")]
    with suppress(ValueError, RecursionError):  # [tea, coffee] has the brackets of JSON, and is words between commas
        words = json.loads(value, parse_int=str, parse_float=str) if value.lstrip().startswith("[") else words
    return [each for each in words if each is not None and str(each).strip()]


def fill(kind: type[Any], given: Given, **more: object) -> Any:  # noqa: ANN401 - a value of the kind
    """Make a value from the parameters that are called as its fields are."""
    return TypeAdapter(kind).validate_python({f.name: given[f.name] for f in fields(kind) if f.name in given} | more)


def scope_name(field: str, given: Given, usual: str | None) -> str:
    """Return the name as every door writes it, of any script; a name that no scope can have is encoded."""
    name = str(given.get(field, "")).strip() or usual
    name = " ".join(name.split()) if name and field == "agent" else name
    if not name:
        raise InvalidInputError(f"Fill in `{field}`: Dify told no id to take for it here.")
    allowed = PLAIN.fullmatch(name) or (field != "conversation" and is_scope_name(name))
    if allowed and name.strip(".") and not name.startswith(QUOTED):
        return name
    spelled = name.encode("utf-8", "surrogatepass")
    quoted = QUOTED + "".join(chr(b) if b != ord(":") and PLAIN.fullmatch(chr(b)) else f":{b:02X}" for b in spelled)
    return quoted if len(quoted) <= 128 else f"{QUOTED}{hashlib.sha256(spelled).hexdigest()}:"


def reach(credentials: Mapping[str, Any]) -> SyncClient:
    """Connect to the server that the plugin was authorized for."""
    url, key = (str(credentials.get(name) or "").strip() for name in ("url", "key"))
    if not (key and key.isascii() and key.isprintable()):
        raise UnauthenticatedError("The API key is empty, or not one of Recollect's.")
    return connect(url, key)


def explain(problem: RecollectError | ValidationError) -> RecollectError:
    """Tell a problem in one line, with what can be done about it, and nothing of what was to be remembered."""
    if isinstance(problem, ValidationError):
        first = problem.errors(include_input=False)[0]
        return InvalidInputError(f"{first['loc'][0] if first['loc'] else 'value'}: {first['msg']}.")
    return type(problem)(" ".join(f"{problem} {REMEDIES.get(type(problem), '')}".split()))


def show(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    """Give memories as flat objects of a workflow."""
    return TypeAdapter(list[Memory]).dump_python(list(memories), mode="json", include={"__all__": SHOWN})


def tell(shown: list[dict[str, Any]]) -> str:
    """Write memories for a model to read, an item for each."""
    items = [f"- {each['content']} ({each['kind']}, {each['occurred_at']}, id {each['id']})" for each in shown]
    return "\n".join(items) or "No memories found."

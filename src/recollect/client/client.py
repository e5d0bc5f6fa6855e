"""The SDK: the verbs of a mind over HTTP, with retries that can not store anything twice."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import count
from json import dumps
from typing import Any
from uuid import UUID, uuid4

from recollect import errors
from recollect.client.blocks import RemoteBlocks
from recollect.client.bodies import JsonType, to_body, to_cue_body, to_parameters, to_part, to_weighing_body
from recollect.client.conversations import RemoteConversation
from recollect.client.fading import RemoteFading
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.recalls import RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.client.transport import Transport
from recollect.core.agents.feedback import judge
from recollect.models.agents import Feedback, Overview, Profile, Reflection, ReflectionProgress, Tuning
from recollect.models.conversations import Conversations, ConversationState
from recollect.models.memories import JSON, Memory, NewMemory, Page, Receipt, Triple
from recollect.models.recall import Association, Cue, Recollection
from recollect.models.service import Job, Jobs, JobState, Ledger

MEMORY, PAGE, RECOLLECTION = JsonType(Memory), JsonType(Page), JsonType(Recollection)
JOB, JOBS, LEDGER = JsonType(Job), JsonType(Jobs), JsonType(Ledger)
OVERVIEW, PROFILE, TUNING = JsonType(Overview), JsonType(Profile), JsonType(Tuning)
CONVERSATIONS, PROGRESS = JsonType(Conversations), JsonType(ReflectionProgress)
TRIPLES = JsonType(list[Triple])
# Answers that are a list, a number or a mapping of the caller's own come as an object with one field.
RECEIPTS, RECOLLECTIONS = JsonType(dict[str, list[Receipt]]), JsonType(dict[str, list[Recollection]])
ASSOCIATIONS, IDS = JsonType(dict[str, list[Association]]), JsonType(dict[str, list[UUID]])
NUMBER, METADATA = JsonType(dict[str, int]), JsonType(dict[str, dict[str, JSON]])
REFLECTION_SECONDS = 600.0
FIRST_WAIT_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 2.0


class Client:
    """A connection to a Recollect server, as the holder of one API key."""

    def __init__(
        self, url: str, key: str, *, timeout_seconds: float = 15.0, transport: type[Transport] = Transport
    ) -> None:
        self._transport = transport(url, key, timeout_seconds)

    async def mind(self, agent: str, user: str = "") -> RemoteMind:
        """Choose a scope; nothing is sent."""
        return RemoteMind(self, agent, user)

    async def jobs(
        self, state: JobState | None = None, *, task: str = "", cursor: int | None = None, limit: int = 50
    ) -> Jobs:
        """Fetch one page of the tenant's jobs that wait, run or have failed, the newest first."""
        chosen = {"state": state, "task": task, "cursor": cursor, "limit": limit}
        parameters = {name: str(value) for name, value in chosen.items() if value}
        return JOBS.validate_json(await self.send("GET", "/v1/jobs", params=parameters))

    async def retry_job(self, job_id: int) -> Job:
        """Let a failed job of the tenant run again; needs the right `admin`."""
        return JOB.validate_json(await self.send("POST", f"/v1/jobs/{job_id}/retry"))

    async def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Add up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        parameters = {"agent": agent, "user": user, "days": str(days)}
        return LEDGER.validate_json(await self.send("GET", "/v1/ledger", params=parameters))

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - httpx's own arguments
        """Send a request, and retry where the server or the network is unavailable; return the body."""
        return await self._transport.send(method, path, **content)

    def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[str]:
        """Read a long answer piece by piece; once it has begun nothing is sent again."""
        return self._transport.stream(path, parameters)

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, and wait so long for its answer; return the body."""
        return await self._transport.send_once(method, path, seconds, **content)

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        await self._transport.pause(seconds)


@dataclass(frozen=True, slots=True)
class RemoteScope:
    """A scope's names, and the server that it is on."""

    client: Client
    agent: str
    user: str

    def _scope(self) -> dict[str, Any]:
        return {"agent": self.agent, "user": self.user}


@dataclass(frozen=True, slots=True)
class RemoteAgent(RemoteScope):
    """An agent on a server: what holds in all its scopes."""

    async def profile(self) -> Profile:
        """Read the agent's default settings."""
        return PROFILE.validate_json(await self.client.send("GET", "/v1/profile", params={"agent": self.agent}))

    async def set_profile(self, profile: Profile) -> None:
        """Change the agent's default settings; unset fields return to their defaults."""
        body: dict[str, Any] = PROFILE.dump_python(profile)
        weighing = to_weighing_body(body.pop("weighing"))
        await self.client.send("PUT", "/v1/profile", json={"agent": self.agent} | body | weighing)

    async def metadata(self) -> Mapping[str, JSON]:
        """Read what callers keep of the agent for themselves."""
        answer = await self.client.send("GET", "/v1/metadata", params={"agent": self.agent})
        return METADATA.validate_json(answer)["metadata"]

    async def tune(self, *, apply: bool = False) -> Tuning:
        """Learn the agent's weights from its feedback; apply them only if asked, and only if they do no worse."""
        body = {"agent": self.agent, "apply": apply}
        return TUNING.validate_json(await self.client.send("POST", "/v1/tune", json=body))


@dataclass(frozen=True, slots=True)
class RemoteParts(RemoteAgent):
    """The ways to the parts of one scope on a server."""

    def conversation(self, conversation: str) -> RemoteConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return RemoteConversation(self.client, self.agent, self.user, conversation)

    @property
    def blocks(self) -> RemoteBlocks:
        """Give what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return RemoteBlocks(self.client, self.agent, self.user)

    @property
    def fading(self) -> RemoteFading:
        """Give what fades in the scope, what has faded, and the way back."""
        return RemoteFading(self.client, self.agent, self.user)

    @property
    def items(self) -> RemoteItems:
        """Give the scope's items: JSON values under names of your own."""
        return RemoteItems(self.client, self.agent, self.user)

    @property
    def knowledge(self) -> RemoteKnowledge:
        """Give what is known in the scope: facts, and the entities that they speak of."""
        return RemoteKnowledge(self.client, self.agent, self.user)

    @property
    def recalls(self) -> RemoteRecalls:
        """Give the recalls that were kept in the scope, to be explained and replayed."""
        return RemoteRecalls(self.client, self.agent, self.user)

    @property
    def topics(self) -> RemoteTopics:
        """Give the scope's topics: the tree, and what is filed under it."""
        return RemoteTopics(self.client, self.agent, self.user)


@dataclass(frozen=True, slots=True)
class RemoteMind(RemoteParts):
    """One scope on a server."""

    async def remember(
        self, memories: str | NewMemory | Sequence[str | NewMemory], *, idempotency_key: str = ""
    ) -> list[Receipt]:
        """Store one or many memories; without a key of yours one is made up, so that retries are safe."""
        many = [memories] if isinstance(memories, str | NewMemory) else memories
        items = [NewMemory(memory) if isinstance(memory, str) else memory for memory in many]
        body = self._scope() | {"memories": [to_body(item) for item in items]}
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        answer = await self.client.send("POST", "/v1/memories", json=body, headers=headers)
        return RECEIPTS.validate_json(answer)["memories"]

    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Load any number of memories in parts, each in one transaction; vectors that are not given follow by a job.

        It is not one transaction: where a part fails, those before it are stored, and the error says how many memories
        that are. Load the same again under the same key, and they are not stored twice.
        """
        key, stored = idempotency_key or uuid4().hex, list[UUID]()
        for number in count(1):
            size, part = to_part(memories, stored)
            if not size:
                break
            body = f'{{"agent":{dumps(self.agent)},"user":{dumps(self.user)},"memories":{part}}}'
            headers = {"Idempotency-Key": f"{key}:{number}", "Content-Type": "application/json"}
            try:
                answer = await self.client.send("POST", "/v1/load", content=body.encode(), headers=headers)
            except errors.RecollectError as problem:
                raise type(problem)(f"{len(stored)} of {len(memories)} memories are stored. {problem}") from None
            stored += IDS.validate_json(answer)["ids"]
        return stored

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Give back what a cue reminds of, best first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        body = self._scope() | to_cue_body(asked)
        return RECOLLECTION.validate_json(await self.client.send("POST", "/v1/recall", json=body))

    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[Recollection]:
        """Recall by several cues in turn, each noticing the accesses before it; or all of them isolated."""
        asked = [to_cue_body(Cue(cue) if isinstance(cue, str) else cue) for cue in cues]
        body = self._scope() | {"cues": asked, "isolated": isolated}
        answer = await self.client.send("POST", "/v1/recall-each", json=body)
        return RECOLLECTIONS.validate_json(answer)["recollections"]

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory, in whichever version has this id."""
        answer = await self.client.send("GET", f"/v1/memories/{memory_id}", params=self._scope())
        return MEMORY.validate_json(answer)

    async def browse(
        self, cursor: UUID | None = None, limit: int = 50, *, as_of: datetime | None = None, at: datetime | None = None
    ) -> Page:
        """Fetch one page of memories, oldest first; as they were believed as of a moment, or true at one."""
        parameters = self._scope() | to_parameters(limit=limit, cursor=cursor, as_of=as_of, at=at)
        return PAGE.validate_json(await self.client.send("GET", "/v1/memories", params=parameters))

    async def forget(self, ids: Sequence[UUID]) -> list[UUID]:
        """Delete memories and all that was derived from them."""
        body = self._scope() | {"ids": [str(memory_id) for memory_id in ids]}
        answer = await self.client.send("POST", "/v1/forget", json=body)
        return IDS.validate_json(answer)["forgotten"]

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Let a worker of the server think about what has gathered, and wait for it: 10 minutes, unless told."""
        try:
            job_id = await self.reflect_later(now)
        except errors.NotFoundError:
            return Reflection((), ())  # The scope is not there yet.
        seconds = REFLECTION_SECONDS if timeout_seconds is None else timeout_seconds
        return await follow(self, job_id, report, seconds)

    async def reflect_later(self, now: datetime | None = None) -> int:
        """Leave a reflection to the worker; return the number of the job, which may be waiting already."""
        answer = await self.client.send("POST", "/v1/reflect", json=self._scope() | to_parameters(now=now))
        return NUMBER.validate_json(answer)["job"]

    async def reflection(self, job_id: int) -> ReflectionProgress:
        """Say how far a reflection is that was left to the worker, and what came of it."""
        answer = await self.client.send("GET", f"/v1/reflections/{job_id}", params=self._scope())
        return PROGRESS.validate_json(answer)

    async def associate(
        self,
        triples: Triple | Sequence[Triple],
        *,
        limit: int = 30,
        original: bool = False,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[Association]:
        """Give back which events and thoughts each perceived triple reminds of, up to a limit of either."""
        perceived = [triples] if isinstance(triples, Triple) else triples
        body = self._scope() | {"triples": TRIPLES.dump_python(list(perceived)), "limit": limit, "original": original}
        body |= to_parameters(as_of=as_of, at=at)
        answer = await self.client.send("POST", "/v1/associate", json=body)
        return ASSOCIATIONS.validate_json(answer)["associations"]

    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Give back the newest chat with somebody, if there was one."""
        parameters = self._scope() | to_parameters(name=name, as_of=as_of, at=at)
        try:
            answer = await self.client.send("GET", "/v1/last-chat", params=parameters)
        except errors.NotFoundError:
            return None
        return MEMORY.validate_json(answer)

    async def feedback(
        self, given: Recollection | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits of a recollection as useful or useless, all others useless if none are named; count the marks."""
        marks = judge(given, useful, useless) if isinstance(given, Recollection) else given
        flat = [
            {"memory_id": str(mark.memory_id), "useful": mark.useful, **asdict(mark.factors)} for mark in marks.marks
        ]
        recall_id = str(marks.recall_id or uuid4())
        body = self._scope() | {"marks": flat, "candidates": marks.candidates, "recall_id": recall_id}
        return NUMBER.validate_json(await self.client.send("POST", "/v1/feedback", json=body))["marked"]

    async def overview(self) -> Overview:
        """Say what the scope holds, in numbers."""
        return OVERVIEW.validate_json(await self.client.send("GET", "/v1/overview", params=self._scope()))

    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> Conversations:
        """Fetch one page of conversations, the latest first; those in sight unless a state is named."""
        parameters = self._scope() | {"cursor": cursor, "limit": str(limit)} | ({"state": state} if state else {})
        return CONVERSATIONS.validate_json(await self.client.send("GET", "/v1/conversations", params=parameters))


async def follow(
    mind: RemoteMind, job_id: int, report: Callable[[str], None] | None, timeout_seconds: float
) -> Reflection:
    """Wait for a reflection by a job, and tell of it whenever it has come further."""
    until, told, wait = time.monotonic() + timeout_seconds, "", FIRST_WAIT_SECONDS
    while True:
        progress = await mind.reflection(job_id)
        if progress.reflection is not None:
            return progress.reflection
        if progress.state is JobState.FAILED:
            raise errors.RecollectError(f"The reflection failed: {progress.reason} Job {job_id} can be tried again.")
        reached = f"{progress.state}: {progress.reason}" if progress.reason else str(progress.state)
        if report is not None and reached != told:
            report(reached)
        told, left = reached, until - time.monotonic()
        if left <= 0:
            raise errors.UnavailableError(
                f"No reflection within {timeout_seconds:g} seconds; job {job_id} goes on ({reached})."
            )
        await mind.client.pause(min(wait, left))
        wait = min(LONGEST_PAUSE_SECONDS, wait * 1.5)

"""Bodies of requests about conversations: as flat as tools like Dify need them, and lists as objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from recollect.doors.http.bodies.fields import (
    SCOPE,
    Body,
    ConversationName,
    Integer,
    Moment,
    Number,
    OfScope,
    Vector,
    build,
    show,
)
from recollect.doors.http.bodies.memories import CueBody
from recollect.errors import InvalidInputError
from recollect.models.conversations import (
    LEGACY,
    MessageStatus,
    NewMessage,
    PartType,
    Shares,
)
from recollect.models.memories import JSON, Role

CONVERSATION = "Your own name for the conversation; it begins with its first message."
LONGEST_MESSAGE = 200_000
LONGEST_URL = 8_000
MOST_TOKENS = 10_000_000
MOST_PARTS = 64
Line = Annotated[str, Field(max_length=200)]
Tokens = Annotated[Integer, Field(ge=0, le=MOST_TOKENS)]
MessageId = UUID | Literal[""]
Share = Annotated[Number, Field(ge=0, le=1)]


class PartBody(Body):
    """One part of a message that is more than plain text."""

    type: PartType = Field(description="One of text, image, file, tool_call, tool_result.")
    text: str = Field(
        "", max_length=LONGEST_MESSAGE, description="The text, a tool's result, or a tool call's arguments as JSON."
    )
    name: Line = Field("", description="The file's or the tool's name.")
    url: str = Field("", max_length=LONGEST_URL, description="Where the image or the file lies.")
    call_id: Line = Field("", description="Which tool call it is, or is the result of.")


class AttachmentBody(Body):
    """A file of a message: where it is stored, not its content."""

    type: Line = Field(description="As you call it: image, document, audio, video, ...")
    url: str = Field("", max_length=LONGEST_URL, description="Where it lies.")
    upload_id: Line = Field("", description="What your own store calls it, where it was uploaded there.")
    side: Literal["", "user", "assistant"] = Field("", description="Whose file it is; the message's own side if empty.")
    name: Line = Field("", description="The file's name.")


class MessageBody(Body):
    """One message to append."""

    role: Role = Field(description="One of user, assistant, system, tool.")
    content: str = Field("", max_length=LONGEST_MESSAGE, description="What is said; made from the parts if empty.")
    name: Line = Field("", description="Who says it; searchable with the content.")
    parts: list[PartBody] = Field(
        default_factory=list[PartBody], max_length=MOST_PARTS, description="What is said in parts, if it is not text."
    )
    attachments: list[AttachmentBody] = Field(
        default_factory=list[AttachmentBody], max_length=MOST_PARTS, description="Files that came with it."
    )
    parent: MessageId | Annotated[Integer, Field(ge=0, lt=1_000)] = Field(
        "",
        description="What it follows: an id, or the position of an earlier message in this call, from 0. Left out or "
        "empty, it follows the message before it; the first one the newest of the conversation.",
    )
    root: bool = Field(default=False, strict=True, description="Whether it begins a thread of its own.")
    legacy: bool = Field(
        default=False,
        strict=True,
        description="Whether it is from before there were branches, and follows the one of its sort before it.",
    )
    stated_parent: UUID | None = Field(
        None, description="What its source named as the parent, where that is not in the conversation."
    )
    status: MessageStatus = Field(MessageStatus.DONE, description="One of done, pending, failed.")
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (mundane) to 10 (life-changing); scored by rules, then by enrichment, if left out.",
    )
    occurred_at: Moment | None = Field(None, description="When it was said, with an offset; now if left out.")
    embedding: Vector = Field(
        default_factory=list[float], description="Its vector in the active space, if you have one."
    )
    external_id: Line = Field("", description="What its source calls it; taken once in a conversation.")
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Your own JSON, at most 16 KB; stored, not searched."
    )

    def to_value(self) -> NewMessage:
        """Turn the body into a value."""
        if self.legacy and self.parent != "":
            raise InvalidInputError("a message that is legacy has no other parent")
        message = build(NewMessage, self)
        return replace(message, parent=LEGACY) if self.legacy else message


class InConversation(OfScope):
    """A conversation of one scope."""

    conversation: ConversationName = Field(description=CONVERSATION)


class AppendBody(InConversation):
    """Messages for one conversation: as a list, or one turn as question and answer."""

    model_config = show(
        {
            "agent": "ada",
            "user": "zhang-wei",
            "conversation": "c-1",
            "messages": [
                {"role": "user", "content": "我对花生过敏。"},
                {"role": "assistant", "content": "记住了，点菜时我会避开花生。"},
            ],
        }
    )

    messages: list[MessageBody] = Field(
        default_factory=list[MessageBody],
        max_length=1_000,
        description="One to 1,000 messages, each following the one before unless it names a parent.",
    )
    question: str = Field(
        "", max_length=LONGEST_MESSAGE, description="Instead of messages: what the user says in this turn."
    )
    answer: str = Field(
        "", max_length=LONGEST_MESSAGE, description="Instead of messages: what the assistant says in this turn."
    )

    def to_values(self) -> list[NewMessage]:
        """Turn the body into values."""
        turn = ((Role.USER, self.question), (Role.ASSISTANT, self.answer))
        said = [NewMessage(role, content) for role, content in turn if content]
        if not self.messages and not said:
            raise InvalidInputError("There is nothing to append: send messages, at least one, or question and answer.")
        if self.messages and said:
            raise InvalidInputError("Send either messages, or question and answer.")
        return said or [message.to_value() for message in self.messages]


class WindowBody(InConversation):
    """Which part of a conversation to see, and how, apart from the budget."""

    leaf: MessageId = Field("", description="Where the thread ends: a message's id; the newest message if empty.")
    tokenizer: Line = Field("", description="A tokenizer's or a model's name; the service's first tokenizer if empty.")
    oversized: str = Field(
        "keep",
        pattern="^(keep|cut)$",
        description="keep or cut: what becomes of a last turn that alone is longer than its budget.",
    )
    unanswered: bool = Field(default=False, strict=True, description="Whether a last turn without an answer is shown.")
    images: bool = Field(
        default=False, strict=True, description="Whether images are handed on as image parts and not as `[image]`."
    )
    image_tokens: Tokens = Field(765, description="What an image costs that is handed on.")
    user_prefix: Line = Field("Human", description="What stands before what the user says, in the history's `text`.")
    assistant_prefix: Line = Field("Assistant", description="What stands before what the assistant says there.")
    upstream: bool = Field(
        default=False, strict=True, description="Whether to walk and to prune as Dify does, its mistakes included."
    )
    message_limit: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="How many turns are shown at most; with upstream, how many Dify would fetch."
    )


class HistoryBody(WindowBody):
    """A history to read."""

    model_config = show(SCOPE | {"conversation": "c-1", "max_tokens": 2000})

    max_tokens: Tokens = Field(2_000, description="The budget in tokens.")
    as_of: Moment | None = Field(None, description="Only what was stored by then, with an offset; all if left out.")
    at: Moment | None = Field(None, description="Only what was said by then, with an offset; all if left out.")


class ContextBody(WindowBody, CueBody):
    """What a prompt is to be made of: the cue, the budget, and how it is divided."""

    model_config = show(
        {
            "agent": "ada",
            "user": "zhang-wei",
            "conversation": "c-1",
            "text": "今晚聚餐点什么菜好？",
            "budget": 4000,
            "system": "你是张伟的助理。",
        }
    )

    text: str = Field(
        "", max_length=LONGEST_MESSAGE, description="What the user says now; its end is what to be reminded of."
    )
    budget: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] = Field(4_000, description="All that the prompt may cost.")
    history_share: Share = Field(0.5, description="The part of the budget that is for the history.")
    memories_share: Share = Field(0.35, description="The part that is for recalled memories.")
    summary_share: Share = Field(0.15, description="The part that is for the conversation's summary.")
    system: str = Field("", max_length=LONGEST_MESSAGE, description="Your own instructions, to stand first.")

    def to_shares(self) -> Shares:
        """Say how the budget is divided."""
        return Shares(self.history_share, self.memories_share, self.summary_share)


class ConverseBody(WindowBody):
    """What a user says, to be answered by the chat model."""

    model_config = show(SCOPE | {"conversation": "c-1", "text": "今晚聚餐点什么菜好？"})

    text: str = Field(max_length=LONGEST_MESSAGE, description="What the user says now.")
    budget: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] = Field(4_000, description="All that the prompt may cost.")
    system: str = Field("", max_length=LONGEST_MESSAGE, description="Your own instructions, to stand first.")


class DescribeBody(OfScope):
    """A conversation's name and metadata; what is left out stays as it is."""

    model_config = show({"agent": "ada", "name": "Dinner on Thursday"})

    name: Line | None = Field(None, description="What it is called.")
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON],
        description="Your own JSON, at most 16 KB; it takes the place of what was there.",
    )

    def new_metadata(self) -> dict[str, JSON] | None:
        """Give the metadata, if they were sent."""
        return self.metadata if "metadata" in self.model_fields_set else None

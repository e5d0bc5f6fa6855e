"""Bodies of requests about conversations: as flat as tools like Dify need them, and lists as objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from recollect.doors.http.bodies.fields import (
    OMITTED,
    SCOPE,
    Body,
    ConversationName,
    Integer,
    Moment,
    Number,
    ScopeBody,
    Vector,
    build,
    build_example_config,
)
from recollect.doors.http.bodies.memories import RecallOptionsBody
from recollect.errors import InvalidInputError
from recollect.models.conversations import (
    LEGACY,
    BudgetShares,
    ConversationState,
    MessageStatus,
    NewMessage,
    PartType,
)
from recollect.models.memories import JSON, Role

CONVERSATION = "Conversation ID, chosen by you. Created with its first message."
MAX_MESSAGE_LENGTH = 200_000
MAX_URL_LENGTH = 8_000
MAX_TOKENS = 10_000_000
MAX_PARTS = 64
Line = Annotated[str, Field(max_length=200)]
Tokens = Annotated[Integer, Field(ge=0, le=MAX_TOKENS)]
MessageId = UUID | Literal[""]
Share = Annotated[Number, Field(ge=0, le=1)]


class PartBody(Body):
    """One part of a message that is more than plain text."""

    type: PartType = Field(description="One of text, image, file, tool_call, tool_result.")
    text: str = Field(
        "", max_length=MAX_MESSAGE_LENGTH, description="The text, a tool's result, or a tool call's arguments as JSON."
    )
    name: Line = Field("", description="The file's or the tool's name.")
    url: str = Field("", max_length=MAX_URL_LENGTH, description="URL of the image or file.")
    call_id: Line = Field("", description="ID of the tool call.")


class AttachmentBody(Body):
    """A file of a message: its address, not its content."""

    type: Line = Field(description="For example image, document, audio or video.")
    url: str = Field("", max_length=MAX_URL_LENGTH, description="URL of the file.")
    upload_id: Line = Field("", description="ID of the file in your own storage.")
    side: Literal["", "user", "assistant"] = Field(
        "", description="Who sent the file. Default: the sender of the message."
    )
    name: Line = Field("", description="The file's name.")


class MessageBody(Body):
    """One message to append."""

    role: Role = Field(description="One of user, assistant, system, tool.")
    content: str = Field("", max_length=MAX_MESSAGE_LENGTH, description="Text. Derived from `parts` if empty.")
    name: Line = Field("", description="Name of the speaker. Searchable.")
    parts: list[PartBody] = Field(
        default_factory=list[PartBody],
        max_length=MAX_PARTS,
        description="Content parts, for example images or tool calls.",
    )
    attachments: list[AttachmentBody] = Field(
        default_factory=list[AttachmentBody], max_length=MAX_PARTS, description="Files of the message."
    )
    parent: MessageId | Annotated[Integer, Field(ge=0, lt=1_000)] = Field(
        "",
        description="Message it follows: an ID, or the position of an earlier message in this request (from 0). "
        "Default: the previous message.",
    )
    root: bool = Field(default=False, strict=True, description="Start a new thread.")
    legacy: bool = Field(
        default=False,
        strict=True,
        description="Message from before branching: follows the previous one of its role.",
    )
    stated_parent: UUID | None = Field(
        None, description="Parent named by the source, if it is not in the conversation."
    )
    status: MessageStatus = Field(MessageStatus.DONE, description="One of done, pending, failed.")
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (trivial) to 10 (life-changing). Default: estimated by rules, then by enrichment.",
    )
    occurred_at: Moment | None = Field(None, description="Time of the message, with an offset. Default: now.")
    embedding: Vector = Field(default_factory=list[float], description="Its vector, if you have one.")
    external_id: Line = Field("", description="Its ID at the source; an equal message is stored once.")
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Any JSON up to 16 KB. Filter by it with `where`."
    )

    def to_value(self) -> NewMessage:
        """Turn the body into a value."""
        if self.legacy and self.parent != "":
            raise InvalidInputError("a legacy message cannot have a parent")
        message = build(NewMessage, self)
        return replace(message, parent=LEGACY) if self.legacy else message


class ConversationBody(ScopeBody):
    """A conversation of one scope."""

    conversation: ConversationName = Field(description=CONVERSATION)


class AppendBody(ConversationBody):
    """Messages to append: a list, or one question and answer."""

    model_config = build_example_config(
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
        description="1 to 1,000 messages. Each follows the previous one unless it names a parent.",
    )
    question: str = Field("", max_length=MAX_MESSAGE_LENGTH, description="Instead of `messages`: the user's message.")
    answer: str = Field(
        "", max_length=MAX_MESSAGE_LENGTH, description="Instead of `messages`: the assistant's message."
    )

    def to_values(self) -> list[NewMessage]:
        """Turn the body into values."""
        turn = ((Role.USER, self.question), (Role.ASSISTANT, self.answer))
        said = [NewMessage(role, content) for role, content in turn if content]
        if not self.messages and not said:
            raise InvalidInputError("Nothing to append: send `messages`, or `question` and `answer`.")
        if self.messages and said:
            raise InvalidInputError("Send either messages, or question and answer.")
        return said or [message.to_value() for message in self.messages]


class WindowBody(ConversationBody):
    """Which part of a conversation to see, and how, apart from the budget."""

    leaf: MessageId = Field("", description="ID of the last message of the thread. Default: the newest message.")
    tokenizer: Line = Field("", description="A tokenizer's or a model's name; the service's first tokenizer if empty.")
    oversized: str = Field(
        "keep",
        pattern="^(keep|cut)$",
        description="How to treat a last turn that exceeds its budget: keep or cut.",
    )
    unanswered: bool = Field(default=False, strict=True, description="Include a last turn that has no answer.")
    images: bool = Field(default=False, strict=True, description="Pass images as image parts instead of `[image]`.")
    image_tokens: Tokens = Field(765, description="Tokens to count per image.")
    user_prefix: Line = Field("Human", description="Prefix of user messages in `text`.")
    assistant_prefix: Line = Field("Assistant", description="Prefix of assistant messages in `text`.")
    upstream: bool = Field(default=False, strict=True, description="Select and trim messages exactly as Dify does.")
    message_limit: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None, description="Maximum number of turns."
    )


class HistoryBody(WindowBody):
    """A history to read."""

    model_config = build_example_config(SCOPE | {"conversation": "c-1", "max_tokens": 2000})

    max_tokens: Tokens = Field(2_000, description="The budget in tokens.")
    as_of: Moment | None = Field(None, description="Only messages stored by this time (with an offset). Default: all.")
    at: Moment | None = Field(None, description="Only messages sent by this time (with an offset). Default: all.")


class ContextBody(WindowBody, RecallOptionsBody):
    """The message, the token budget and how it is divided."""

    model_config = build_example_config(
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
        "", max_length=MAX_MESSAGE_LENGTH, description="The user's message. Its end is used as the query."
    )
    budget: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] = Field(4_000, description="Token budget of the prompt.")
    history_share: Share = Field(0.5, description="Share of the budget for the history.")
    memories_share: Share = Field(0.35, description="Share of the budget for memories.")
    summary_share: Share = Field(0.15, description="Share of the budget for the summary.")
    system: str = Field("", max_length=MAX_MESSAGE_LENGTH, description="Your system prompt. Comes first.")

    def to_shares(self) -> BudgetShares:
        """Return how the budget is divided."""
        return BudgetShares(self.history_share, self.memories_share, self.summary_share)


class ChatBody(WindowBody):
    """The user's message, to be answered by the chat model."""

    model_config = build_example_config(SCOPE | {"conversation": "c-1", "text": "今晚聚餐点什么菜好？"})

    text: str = Field(max_length=MAX_MESSAGE_LENGTH, description="The user's message.")
    budget: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] = Field(4_000, description="Token budget of the prompt.")
    system: str = Field("", max_length=MAX_MESSAGE_LENGTH, description="Your system prompt. Comes first.")


class UpdateConversationBody(ScopeBody):
    """A new name, metadata or state. Omitted fields do not change."""

    model_config = build_example_config({"agent": "ada", "name": "Dinner on Thursday"})

    name: Line | None = Field(None, description="Conversation name.")
    metadata: dict[str, JSON] = Field(OMITTED, description="Any JSON up to 16 KB. Replaces the existing metadata.")
    state: Literal[ConversationState.ACTIVE, ConversationState.ARCHIVED] | None = Field(
        None, description="archived, or active, which also restores a deleted conversation."
    )
    close_segment: bool = Field(default=False, strict=True, description="Close the open segment.")

"""Chat: assemble a prompt, ask the chat model, and append question and answer in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH
from recollect.core.text.answers import AnswerSchema
from recollect.core.text.checks import UNSTORABLE
from recollect.errors import ChatModelError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.conversations import Context, NewMessage, Reply
from recollect.models.memories import Role
from recollect.models.service import Caller, Scope
from recollect.store.service.scopes import locate, open_scope
from recollect.verbs.conversations.append import append
from recollect.verbs.conversations.context import context
from recollect.verbs.conversations.prompt import PromptRequest
from recollect.verbs.dependencies import Dependencies, require_chat_model
from recollect.verbs.service.costs import metered

STEP, PROMPT = "chat", "utterance"


class AssistantReply(AnswerSchema):
    """What the assistant says next."""

    text: str


async def chat(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    conversation: str,
    wanted: PromptRequest,
    report: Callable[[Context], None] | None,
) -> Reply:
    """Answer a user's message; append both the question and the answer, or neither."""
    require_chat_model(parts)
    place = await locate(parts.database, scope)
    made = await context(parts, caller, scope, conversation, wanted, place)
    if report is not None:
        report(made)
    scope_id = place.scope_id or await open_scope(parts.database, scope)
    model = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    answer = await generate_reply(model, made)
    said = turn(made, wanted, answer)
    appended = await append(parts, caller, scope, conversation, said)
    return Reply(answer, made, tuple(appended))


async def generate_reply(chat: ChatModel, made: Context) -> str:
    """Ask for the assistant's next message; as JSON, no message can be mistaken for another."""
    messages = json.dumps([dict(message) for message in made.messages], ensure_ascii=False, indent=1)
    answer = await chat.ask(fill_prompt(PROMPT, messages=messages), AssistantReply)
    text = UNSTORABLE.sub("", answer.text).strip()[:MAX_MESSAGE_LENGTH]
    if not text:
        raise ChatModelError("the chat model returned an empty answer", answered=True)
    return text


def turn(made: Context, wanted: PromptRequest, answer: str) -> list[NewMessage]:
    """Return the messages to append: the answer, and the question unless the thread has it."""
    if made.asked is None:
        return [NewMessage(Role.USER, wanted.cue.text, parent=wanted.window.leaf), NewMessage(Role.ASSISTANT, answer)]
    # If the whole turn was shown, the answer follows its last message.
    return [NewMessage(Role.ASSISTANT, answer, parent=wanted.window.leaf if wanted.window.unanswered else made.asked)]

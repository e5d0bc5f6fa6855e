"""Every error that Recollect raises on purpose, one small tree; the message says what to do."""

from __future__ import annotations

from datetime import datetime

WAKING = "This scope was not used for long, and is being brought back from object storage; try again."


class RecollectError(Exception):
    """The root: catch this to catch them all."""

    code = "error"
    unavailable = False
    """True when something is unavailable that may come back by itself: a caller who can wait should wait."""


class InvalidInputError(RecollectError):
    """The request is not valid as it is; the caller must change it."""

    code = "invalid_input"


class UnauthenticatedError(RecollectError):
    """No key, or one that is unknown or revoked."""

    code = "unauthenticated"


class ForbiddenError(RecollectError):
    """The key lacks the right that this call needs."""

    code = "forbidden"


class NotFoundError(RecollectError):
    """Nothing of that id in this scope; a foreign id looks exactly the same."""

    code = "not_found"


class ConflictError(RecollectError):
    """It conflicts with what is stored: a key used with another body, a revision that is not the expected one."""

    code = "conflict"


class CursorExpiredError(RecollectError):
    """The changes after a cursor are no longer known: read the scope anew, and follow it from now on."""

    code = "cursor_expired"


class UnavailableError(RecollectError):
    """The database was not available, or a deadline passed; try again later."""

    code = "unavailable"
    unavailable = True


class RateLimitError(UnavailableError):
    """A key or a tenant has asked more of a server than its limit allows; try again when the server says."""

    code = "rate_limit"


class OverdueError(UnavailableError):
    """A statement took longer than its time and was cancelled; earlier statements were answered."""


class MovedError(UnavailableError):
    """A scope has gone to another server since it was looked for, or is going there; looked for again, it is found."""


class WakingError(UnavailableError):
    """The scope was not used for long and lies in object storage; it is being brought back: try again soon."""

    code = "waking"

    def __init__(self, message: str = WAKING, *, scope_id: int = 0) -> None:
        super().__init__(message)
        self.scope_id = scope_id
        """Which scope it is."""


class ColdStorageError(RecollectError):
    """The object storage did not answer, or not with what was stored there; the scope stays as it is."""

    code = "cold_storage"
    unavailable = True


class ErasureLogError(UnavailableError):
    """An erasure could not be logged outside the database, so nothing was erased; try again."""

    code = "erasure_log"


class BehindError(UnavailableError):
    """A replica has not replayed what a caller has seen; the primary has it."""


class LeaseLostError(RecollectError):
    """Another worker took over the job; this one must not write for it any more."""

    code = "lease_lost"
    unavailable = True


class EmbedderError(RecollectError):
    """The embedding model gave no usable vectors; writes and reads go on without it."""

    code = "embedder"

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        """True when trying again cannot help: a wrong model name, a refused key, wrong dimensions."""
        self.unavailable = not lasting


class ChatModelError(RecollectError):
    """The chat model gave no usable answer; nothing of it is kept."""

    code = "chat_model"

    def __init__(self, message: str, *, lasting: bool = False, answered: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        """True when trying again cannot help: a wrong model name, a refused key."""
        self.answered = answered
        """True when the model answered, but not usably: another try may do better, or never."""
        self.unavailable = not (lasting or answered)


class MirrorError(RecollectError):
    """A mirror did not answer, or not wholly; the record is not affected."""

    code = "mirror"
    unavailable = True


class BudgetError(RecollectError):
    """A tenant's tokens of the day are used up; its enrichment waits, and nothing else does."""

    code = "budget"
    unavailable = True

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until
        """When it may go on; there is no use in trying before."""


class TextVersionError(RecollectError):
    """A scope's texts are folded by another version of the rules than those of this write; written again, it fits."""

    code = "text_version"
    unavailable = True

    def __init__(self, version: int) -> None:
        super().__init__("The terms of this scope were rewritten meanwhile; try again.")
        self.version = version
        """The version of the scope."""


class SetupError(RecollectError):
    """Something on this machine or in the configuration is missing or wrong."""

    code = "setup"


class SchemaError(SetupError):
    """The schema of the database does not fit this program; somebody must migrate it or update the program."""

    unavailable = True  # Jobs wait for that instead of giving up. A caller is not told to try again.

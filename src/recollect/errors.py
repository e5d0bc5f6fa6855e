"""Every error that Recollect raises on purpose, one small tree; the message says what to do."""

from __future__ import annotations

from datetime import datetime

WAKING = "This scope is being restored from object storage. Try again in a few seconds."


class RecollectError(Exception):
    """The root: catch this to catch them all."""

    code = "error"
    unavailable = False
    """True if the service may recover without a change: a caller that can wait should wait."""


class InvalidInputError(RecollectError):
    """The request is not valid; the caller must change it."""

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
    """The request conflicts with stored data: a key used with another body, or an unexpected version."""

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


class StatementTimeoutError(UnavailableError):
    """A statement took longer than its time and was cancelled; earlier statements were answered."""


class ScopeMovedError(UnavailableError):
    """A scope has gone to another server since it was looked for, or is going there; looked for again, it is found."""


class ScopeRestoringError(UnavailableError):
    """The scope was unused for long and is in object storage; it is being restored: try again soon."""

    code = "waking"

    def __init__(self, message: str = WAKING, *, scope_id: int = 0) -> None:
        super().__init__(message)
        self.scope_id = scope_id
        """Which scope it is."""


class ColdStorageError(RecollectError):
    """The object storage did not answer, or not with the stored data; the scope stays unchanged."""

    code = "cold_storage"
    unavailable = True


class ErasureLogError(UnavailableError):
    """An erasure could not be logged outside the database, so nothing was erased; try again."""

    code = "erasure_log"


class LeaseLostError(RecollectError):
    """Another worker took over the job; this one must not write for it any more."""

    code = "lease_lost"
    unavailable = True


class EmbedderError(RecollectError):
    """The embedding model gave no usable vectors; writes and reads continue without it."""

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
        """When to try again; there is no use in trying before."""


class SetupError(RecollectError):
    """Something on this machine or in the configuration is missing or wrong."""

    code = "setup"


class ColdSetupError(SetupError):
    """A scope is in object storage, but this process has no address of it; an operator must set it."""

    unavailable = True  # Jobs wait for that instead of giving up. A caller gets no advice to try again.


class SchemaError(SetupError):
    """The schema of the database does not fit this program; somebody must migrate it or update the program."""

    unavailable = True  # Jobs wait for that instead of giving up. A caller gets no advice to try again.


class WrongServerError(SetupError):
    """An address leads to another server than the catalog says."""

    unavailable = True  # Jobs wait until an operator has corrected the address.

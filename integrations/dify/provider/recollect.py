"""The plugin's authorization, checked where it counts: at the server."""

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from memory_tool import explain, reach

from recollect.errors import ForbiddenError, RecollectError


class Recollect(ToolProvider):
    """A Recollect server, and the key that opens it."""

    def _validate_credentials(self, credentials: dict[str, str]) -> None:
        try:
            with reach(credentials) as memory:
                memory.mind("dify").overview()
        except ForbiddenError:
            return  # The server knows the key: it is bound to other names, or may only write.
        except RecollectError as problem:
            raise ToolProviderCredentialValidationError(str(explain(problem))) from None
        except ValueError:
            raise ToolProviderCredentialValidationError("What answers at this URL is not Recollect.") from None

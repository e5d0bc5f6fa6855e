"""The facade in this process: everything remembered in one scope as one object."""

from recollect.mind.mind import Mind

__all__ = ["Mind"]

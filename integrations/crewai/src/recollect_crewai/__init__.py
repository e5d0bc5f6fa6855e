"""Recollect for CrewAI: a storage for its memory."""

from recollect_crewai.storage import RecollectStorage

__all__ = ["RecollectStorage"]

"""Minds as other callers have them."""

from __future__ import annotations

from dataclasses import replace


def with_access(mind, **changed):
    """Give the same mind with another caller, other parts or another deadline."""
    return replace(mind, access=replace(mind.access, **changed))


def with_options(parts, **changed):
    """Give the same parts with other options of the operator."""
    return replace(parts, options=replace(parts.options, **changed))

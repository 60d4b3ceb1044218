"""Conditions of an object that its owner should know."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about an object that its owner should know. It exists only while it is true."""

    type: str
    reason: str
    message: str

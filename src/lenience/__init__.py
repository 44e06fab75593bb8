"""Optimal accept/reject policies when only the accepted reveal their outcome."""

from __future__ import annotations

"""Worlds that draw individuals, engines that run policies in them, and replays of past data."""

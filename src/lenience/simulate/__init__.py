"""Worlds that draw individuals, and the runner that puts policies through them."""

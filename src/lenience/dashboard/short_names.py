"""Short names of segments: without common parts, and cut so that they still differ."""

from __future__ import annotations

import re
from collections.abc import Sequence

PART = re.compile(
    r"(.*?)\s*(=|<|>=|(?<= )(?=-?[\d.]+(?:e[+-]?\d+)?\.\.))(.*)"
)  # a part of a cell's name: the feature, and its range or value


def without_features(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the features that all names repeat, and the names without them. Other names have no features.

    >>> without_features(["score<580, region=Nord", "score 580..640, region=other"])[0]
    ['score', 'region']
    >>> without_features(["score<580, region=Nord", "score 580..640, region=other"])[1]["score 580..640, region=other"]
    '580..640, other'
    >>> without_features(["young", "old"])
    ([], {'young': 'young', 'old': 'old'})
    """
    cells = [[PART.fullmatch(part) for part in name.split(", ")] for name in names]
    features = {tuple(part[1] if part else "" for part in cell) for cell in cells}
    if len(features) != 1 or "" in next(iter(features)):
        return [], {name: name for name in names}
    plain = [", ".join(("" if part[2] == "=" else part[2]) + part[3] for part in cell if part) for cell in cells]
    return list(next(iter(features))), dict(zip(names, plain, strict=True))


def shortened(names: Sequence[str], longest: int) -> dict[str, str]:
    """Return each name in at most ``longest`` letters, all cut at one place that keeps them different.

    >>> shortened(["north", "customers of the northern region"], 16)
    {'north': 'north', 'customers of the northern region': 'custome…n region'}
    >>> shortened(["score 580..640, income=other", "score 640..700, income=other"], 16)
    {'score 580..640, income=other': '580..640, other', 'score 640..700, income=other': '640..700, other'}
    >>> list(shortened(["a very long name, part 1 of it all", "a very long name, part 2 of it all"], 16).values())
    ['a ve…1 of it all', 'a ve…2 of it all']
    """
    plain = without_features(names)[1]
    for room in range(longest, max(map(len, plain.values()), default=0) + 1):
        middle = room // 2 - 1
        for head in sorted(range(1, room), key=lambda head: abs(head - middle)):
            cut = {name: _cut(text, head, room) for name, text in plain.items()}
            if len(set(cut.values())) == len(cut):
                return cut
    return plain


def _cut(text: str, head: int, room: int) -> str:
    return text if len(text) <= room else f"{text[:head].rstrip()}…{text[len(text) - room + head + 1 :].lstrip()}"

"""The package's public names."""

from __future__ import annotations

import pytest

import lenience


def test_public_names_are_sorted_and_load() -> None:
    names = lenience.__all__[1:]
    assert names == sorted(names)
    for name in names:
        value = getattr(lenience, name)
        assert value.__doc__, name
    assert set(lenience.__all__) <= set(dir(lenience))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lenience.nothing

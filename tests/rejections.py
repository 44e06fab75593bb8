"""Expect an InputError by its field and its code: sentences may be rewritten, these may not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lenience.core.errors import InputError


@contextmanager
def rejected(field: str | None, code: str = "invalid_value") -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an error about this field, with this code."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert (caught.value.field, caught.value.code) == (field, code), str(caught.value)

"""Read an upload in a process of its own, with limits on its memory, processor time and output.

A file from outside can make any reader use more memory or time than it should. The checks of
:mod:`lenience.dashboard.wizard.upload_reader` reject the known ways. The limits of the process stop the others: the
process ends, and the service goes on.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from contextlib import suppress
from pathlib import Path

from lenience.core.errors import InputError
from lenience.dashboard.wizard.upload_reader import save_upload, too_large

MEMORY = 3 << 30  # bytes of addresses, more than the engine's own limit of 1 GB in upload_table
PROCESSOR_SECONDS = 60
SECONDS = 180.0  # on a clock: a busy machine is slower
OUTPUT = 1 << 30  # bytes of the saved file
TOO_MUCH = "it needs too much memory or time to be read. Leave columns out, or save it as CSV"


async def save_upload_apart(source: Path, target: Path, sheet: str = "", name: str = "") -> None:
    """Check an uploaded file and save it as a table of texts, in a process of its own.

    If the task is cancelled, the process is killed.

    Parameters
    ----------
    source
        The uploaded file.
    target
        Where to save the table. It exists only if the whole file was read.
    sheet
        The sheet of an Excel file; if empty, the first sheet that is not.
    name
        The file's own name, for the record.

    Raises
    ------
    InputError
        If the file cannot be read or is too large.
    """
    command = (sys.executable, "-m", __name__, str(source), str(target), sheet, name)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    complete = False
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
        answer = _read_answer(output)
        if answer is None:
            raise too_large(TOO_MUCH)
        if answer:
            raise InputError.because(answer["reason"], "file", label="", code=answer["code"])  # type: ignore[arg-type]
        complete = True
    except TimeoutError:
        raise too_large(TOO_MUCH) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if not complete:
            target.unlink(missing_ok=True)


def _read_answer(output: bytes) -> dict[str, str] | None:
    """Return the error in the output of the process (empty if there was none), or None if it ended without a word.

    >>> _read_answer(b"{}\\n"), _read_answer(b"")
    ({}, None)
    """
    try:
        answer: dict[str, str] = json.loads(output)
    except ValueError:
        return None
    return answer


def _set_limits() -> None:
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
        (resource.RLIMIT_FSIZE, OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most, most) if hard == resource.RLIM_INFINITY else (min(most, hard), hard))
    with suppress(OSError):  # if the machine runs out of memory, Linux ends this process first
        Path("/proc/self/oom_score_adj").write_text("900")


def main() -> None:
    """Read the file named on the command line, and print the error as JSON, empty if there is none."""
    _set_limits()
    try:
        save_upload(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] or None, sys.argv[4])
    except InputError as error:
        print(json.dumps({"reason": str(error), "code": error.code}))
    except MemoryError:
        print(json.dumps({"reason": TOO_MUCH, "code": "too_large"}))
    else:
        print("{}")


if __name__ == "__main__":
    main()

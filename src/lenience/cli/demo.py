"""lenience demo: run the service and its dashboard on a lender's portfolio with simulated applicants."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lenience.cli.options import FOLDER, console, json_option, print_json
from lenience.cli.serve import listen, require_service
from lenience.core.errors import InputError
from lenience.core.validation import real

if TYPE_CHECKING:
    import uvicorn

FILES = ("demo.db", "demo.db-wal", "demo.db-shm")


@click.command(short_help="Open the dashboard on a lender's portfolio with simulated applicants.")
@click.option("--folder", type=FOLDER, default="demo-output", show_default=True, help="The folder of its database.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 chooses a free one."
)
@click.option("--seconds", type=float, help="Stop after this many seconds; by default run until stopped.")
@json_option
def demo(folder: str, port: int, seconds: float | None, as_json: bool) -> None:
    """Serve a lender's portfolio with three months of history, and new applicants every second.

    The policies decide by score and amount, and monitor race, sex and age band, which they never see. The true success
    rates come from the Federal Reserve's score tables of 2007 (four groups by ten score bands); loans to firms and for
    cars have made-up rates. With scikit-learn installed, loans for cars are decided by the applicants' own features.
    Applicants and their attributes are simulated, and outcomes arrive later. Everything goes through the real service
    and its log, which you can check with lenience audit --database demo-output/demo.db. An earlier demo in the folder
    is replaced.

    \b
    Example:
      lenience demo
      lenience demo --port 8080 --seconds 60
    """
    if seconds is not None:
        real("--seconds", seconds, least=0, most=1e9)
    require_service("lenience[serve,client,simulate]", "httpx")
    import uvicorn

    from lenience.cli.demo_portfolio import FLOOR, ApplicantFeed, Portfolio, simulate_past
    from lenience.client.client import Client
    from lenience.dashboard.app import create_app
    from lenience.service.http.logs import configure_logs

    database = _empty(Path(folder))
    listening = listen("127.0.0.1", port)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    if not as_json:
        console().print("Simulating a lender's last three months: applicants, decisions and outcomes …")
    portfolio = Portfolio(by_features=find_spec("sklearn") is not None, floor=FLOOR)  # their models need it
    labels = simulate_past(database, portfolio)
    configure_logs("WARNING")
    app = create_app(database)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5)
    )
    client = Client(address)
    stream = ApplicantFeed(client, portfolio, labels, time.monotonic)
    if as_json:
        print_json({"url": address, "database": database})
    else:
        console().print(
            f"\nOpen the dashboard in a browser: {address}\nTwo applicants arrive every second. The outcomes of the "
            f"accepted arrive about half a minute later. Everything is stored in {database}. Stop with Ctrl-C.",
            soft_wrap=True,
        )
    stream.start()
    if seconds is not None:
        threading.Thread(target=_stop_after, args=(server, seconds), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    stream.stopping.set()
    stream.join(5)
    client.close()


def _empty(folder: Path) -> str:
    """Return the path of a new database; the database of an earlier demo is removed."""
    from lenience.service.storage.store import Store

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError.because(
            f"must be a folder that can be written to, not {str(folder)!r} ({error.strerror})",
            "folder",
            value=str(folder),
            code="unreadable_file",
        ) from None
    database = str(folder / FILES[0])
    Store(database, serving=True).close()  # raises an error while another demo is running
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    return database


def _stop_after(server: uvicorn.Server, seconds: float) -> None:
    time.sleep(seconds)
    server.should_exit = True

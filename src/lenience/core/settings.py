"""The environment variables that are read, in their one place."""

from __future__ import annotations

DATABASE = "LENIENCE_DATABASE_URL"
LOG_REQUESTS = "LENIENCE_LOG_REQUESTS"
SESSION_SECRET = "LENIENCE_SESSION_SECRET"
LOG_KEY = "LENIENCE_LOG_KEY"
URL = "LENIENCE_URL"
KEY = "LENIENCE_KEY"
CLOCK_STEP = "LENIENCE_CLOCK_STEP"
FOUR_EYES = "LENIENCE_FOUR_EYES"
OPENID = "LENIENCE_OIDC"
OPENID_SECRET = "LENIENCE_OIDC_CLIENT_SECRET"
ALLOW_FSYNC_OFF = "LENIENCE_ALLOW_FSYNC_OFF"
CACHE = "LENIENCE_CACHE"
WEBHOOK_SECRET = "LENIENCE_WEBHOOK_SECRET"
WEBHOOK_ALLOW = "LENIENCE_WEBHOOK_ALLOW"

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"

OWN = {
    DATABASE: "The database of `serve`, `keys`, `audit`, `backup` and `restore`: a file (SQLite) or "
    "`postgresql://user:password@host/name`.",
    LOG_REQUESTS: "`1` logs every request. `lenience serve --log-requests` sets it for the processes it starts; set it "
    "yourself only where another server runs `lenience.dashboard.app:from_environment`.",
    SESSION_SECRET: "The secret that signs the dashboard's sessions: at least 32 characters, or several such secrets "
    "separated by commas. The first signs, all verify. By default it is in a file beside a SQLite database. With "
    "PostgreSQL, set it where several services stand behind one address, and to keep sessions over a restart.",
    LOG_KEY: "The private key that signs checkpoints of the log, as `lenience keys log-key --new` prints it. By "
    "default it is in a file beside a SQLite database. With PostgreSQL, set it to have proofs of decisions.",
    URL: "The address of the service that `lenience outcomes` and `lenience erase` send to.",
    KEY: "The API key that `lenience outcomes` and `lenience erase` send with; unlike `--key` it is in no list of "
    "processes.",
    CLOCK_STEP: "The largest forward step of the machine's clock that a running service follows, in seconds; 3600 by "
    "default. `lenience serve --clock-step` sets it for the processes it starts.",
    FOUR_EYES: "`1` lets a version be activated only by somebody other than its author. `lenience serve --four-eyes` "
    "sets it for the processes it starts.",
    OPENID: "A TOML file with the settings for sign-in with OpenID Connect. `lenience serve --oidc` sets it for the "
    "processes it starts.",
    OPENID_SECRET: "The client secret for sign-in with OpenID Connect. The file may name a file with it instead.",
    CACHE: "The folder that keeps tables for decisions with features, so that the next process need not compute them; "
    "`off` keeps none. By default `lenience` in the user's cache folder. A damaged file is computed again.",
    WEBHOOK_SECRET: "The secret from which the secrets of webhooks are derived: at least 32 characters. By default it "
    "is in a file beside a SQLite database. With PostgreSQL, set it to have webhooks.",
    WEBHOOK_ALLOW: "Host names (`hooks.example.org`, `.example.org` for all below it) and networks (`10.1.2.0/24`) to "
    "which webhooks go, separated by commas. By default they go to public addresses over https only. If it is set, "
    "they go to what it lists alone, also to private addresses and over http.",
    ALLOW_FSYNC_OFF: "`1` lets the service use a PostgreSQL server with `fsync = off`. Only for tests: such a server "
    "loses decisions when its machine crashes.",
}
OF_OTHERS = {
    MULTIPROCESS: "Where the processes of one service keep their metrics, so that each of them reports the sum. "
    "`lenience serve --workers` makes a folder for it; set it where another server starts several.",
    "NUMBA_CACHE_DIR": "Where compiled kernels are kept; by default beside the installed files, or in the user's cache "
    "folder if these cannot be written. Set it to a folder that lasts where containers come and go.",
    "FORWARDED_ALLOW_IPS": "From which proxies uvicorn believes `X-Forwarded-*`; by default 127.0.0.1.",
    "MPLCONFIGDIR": "Where matplotlib keeps its font cache; set it where the home folder cannot be written.",
}

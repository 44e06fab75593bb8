"""OpenID providers for the tests: an independent one in a process of its own, and one that can lie.

The independent one is oidc-provider-mock, built on Authlib's server classes. It shares no code with the service, so a
misreading of the standard on our side shows. The other one is written here: it checks what a careful provider checks
(the client's secret, the redirect address, PKCE, codes that work once), and a test can bend its ID tokens.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

Claims = dict[str, Any]
CLIENT, SECRET = "lenience", "client secret: 100% private"
PEOPLE: dict[str, Claims] = {
    "1001": {"name": "Anna Berg", "email": "anna@bank.example", "groups": ["risk-admins", "everyone"]},
    "1002": {"name": "Bela Cruz", "email": "bela@bank.example", "groups": ["risk-admins"]},
    "1003": {"name": "Chi Dao", "email": "chi@bank.example", "groups": ["auditors"]},
    "1004": {"name": "Dan Eno", "email": "dan@bank.example", "groups": ["marketing"]},
}
ROLES = {"admin": ["risk-admins"], "read": ["auditors"]}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def settings_file(folder: Path, issuer: str, port: int, client: str = CLIENT, secret: str = SECRET, **more: Any) -> str:
    """Write the settings of a service on a port, with the client secret in a file of its own."""
    hidden = folder / "client-secret"
    hidden.write_text(secret)
    hidden.chmod(0o600)
    values = {
        "issuer": issuer,
        "client_id": client,
        "client_secret_file": str(hidden),
        "address": f"http://127.0.0.1:{port}",
        "name": "Example Bank",
        **more,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    path = folder / "oidc.toml"
    path.write_text(
        "\n".join([*lines, "[roles]", *(f"{role} = {json.dumps(groups)}" for role, groups in ROLES.items())])
    )
    return str(path)


@contextmanager
def independent_provider(redirect: str) -> Iterator[tuple[str, str, str]]:
    """Run oidc-provider-mock and register a client: the issuer, and the client's id and secret."""
    port = free_port()
    program = f"""
import werkzeug.serving, oidc_provider_mock
app = oidc_provider_mock.app(require_client_registration=True, require_nonce=True)
werkzeug.serving.make_server("127.0.0.1", {port}, app, threaded=True).serve_forever()
"""
    issuer = f"http://localhost:{port}"  # to a browser, this is another site than 127.0.0.1
    environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL)
    try:
        client = _registered(issuer, redirect)
        for subject, claims in PEOPLE.items():
            httpx.put(f"{issuer}/users/{subject}", json=claims).raise_for_status()
        yield issuer, client["client_id"], client["client_secret"]
    finally:
        process.terminate()
        process.wait(10)


def _registered(issuer: str, redirect: str) -> Claims:
    for _ in range(300):
        try:
            answer = httpx.post(f"{issuer}/oauth2/clients", json={"redirect_uris": [redirect]})
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            answer.raise_for_status()
            client: Claims = answer.json()
            return client
    raise RuntimeError("the provider did not start")


class LyingProvider:
    """A provider that a test controls: ``bend`` changes the claims of an ID token, ``sign`` makes the token."""

    def __init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: list[str] = []
        self.rotate()
        self.honest()
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def honest(self) -> None:
        """Tell the truth again."""
        self.bend: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.metadata: Claims = {}
        self.user_info: Claims = {}
        self.status = 200
        self.requests.clear()

    def rotate(self) -> None:
        """Replace the signing key."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})

    def signed(self, claims: Claims, **header: Any) -> str:
        """Return an honest signature of any claims."""
        return jwt.encode({"alg": "RS256", "kid": self.key.kid, **header}, claims, self.key)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def code_for(self, address: str, subject: str = "1001", **more: str) -> str:
        """Sign somebody in at an authorization address, as a browser would, and return the address to go back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, "sub": subject}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], **more})}"

    def answer(self, method: str, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """Answer a request."""
        self.requests.append(path)
        if self.status != 200 and path != "/elsewhere":
            return self.status, {}
        if path in ("/.well-known/openid-configuration", "/elsewhere"):
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "id_token_signing_alg_values_supported": ["RS256"],
                **self.metadata,
            }
        if path == "/jwks":
            return 200, {"keys": [self.key.as_dict(private=False)]}
        if path == "/userinfo" and authorization == "Bearer access":
            return 200, self.user_info
        if path == "/token" and method == "POST":
            return self._token(form, authorization)
        return 404, {}

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        kind, _, given = authorization.partition(" ")
        client, _, secret = b64decode(given).decode().partition(":") if kind == "Basic" else ("", "", "")
        if (unquote(client), unquote(secret)) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        digest = urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if asked is None or asked["redirect_uri"] != form["redirect_uri"] or asked["code_challenge"] != digest:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": asked["sub"],
            "nonce": asked["nonce"],
            "iat": now,
            "exp": now + 300,
            **PEOPLE.get(asked["sub"], {}),
        }
        token = self.sign(self.bend(claims))
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": token}


def _handler(provider: LyingProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, body: str) -> None:
            form = {name: values[0] for name, values in parse_qs(body).items()}
            authorization = self.headers.get("Authorization", "")
            status, content = provider.answer(self.command, urlsplit(self.path).path, form, authorization)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Location", "/elsewhere")  # matters if the status is that of a redirect
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler

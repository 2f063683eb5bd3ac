"""Who may speak to the page.

In: requests from anywhere that this machine's browser can be led to. Out: those that the page itself sends; everything
else is refused before it is looked at. Three attacks are meant: another web site that sends requests or opens a
WebSocket (Origin), a name that is made to point to this machine (Host), and, on other addresses than loopback, anybody
(token). Every answer carries a policy under which the browser runs no code but the page's own files.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from absl import logging
from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from alphago_zero.errors import UserError

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_WORDS = {404: "There is no such page.", 413: "The file is too large for a game."}
COOKIE = "alphago_zero_token"


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class Guard:
    """The checks that every request passes first."""

    def __init__(self, token: str | None = None):
        self._token = token

    @web.middleware
    async def middleware(self, request: web.Request, handler) -> web.StreamResponse:
        try:
            response = self._refuse(request) or self._sign_in(request) or await handler(request)
        except web.HTTPException as error:
            response = message(error.status, _WORDS.get(error.status, error.reason))
            response.headers.update({name: error.headers[name] for name in ("Allow",) if name in error.headers})
        except UserError as error:
            response = message(422, str(error))
        except RequestPayloadError:
            response = message(400, "The request cannot be read.")
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            logging.exception("%s %s", request.method, request.path)
            response = message(500, "Something went wrong here; the server's log says what.")
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _refuse(self, request: web.Request) -> web.Response | None:
        """An answer to a request that did not come from the page."""
        if not self._is_our_host(request.headers.get("Host", "")):
            return message(421, "This page is not served under that name.")
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same(origin, request):
            return message(403, "Other sites may not use this page.")
        site = request.headers.get("Sec-Fetch-Site", "none")
        if site not in ("same-origin", "none") and request.path != "/":
            return message(403, "Other sites may not use this page.")
        if self._token and not self._has_token(request):
            return message(401, "This page wants a token: open the whole address that the server printed.")
        return None

    def _is_our_host(self, host: str) -> bool:
        """Loopback; with a token any address, and this machine's name: but no name that others could make up."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
            return True
        return bool(self._token) and (_is_address(name) or name == socket.gethostname().lower())

    def _has_token(self, request: web.Request) -> bool:
        given = request.query.get("token") or request.cookies.get(COOKIE, "")
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())

    def _sign_in(self, request: web.Request) -> web.Response | None:
        """The token goes from the address into a cookie, so that it stands in no history."""
        if not self._token or "token" not in request.query or request.path != "/":
            return None
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict", path="/")
        return response


def _is_same(origin: str, request: web.Request) -> bool:
    return origin.lower() == f"{request.scheme}://{request.headers.get('Host', '')}".lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def message(status: int, text: str) -> web.Response:
    """An error as the page shows it."""
    return web.json_response({"error": text}, status=status)

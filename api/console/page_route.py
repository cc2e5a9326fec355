"""Route class of the console's pages: errors are pages, and a missing session leads to the form."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from api import errors
from api.console.rendering import POLICY, is_update, show
from api.console.session import GENUINE, SignInNeeded, StaleForm, base_of, is_own
from api.console.unsent import unsent_form
from pipeline.domain.errors import Overloaded, TransientError
from pipeline.ledger.failures import LedgerUnavailable

TITLES = {
    400: "That does not work",
    401: "Please sign in",
    403: "Not allowed with this key",
    404: "Not found",
    409: "Something has changed",
    413: "Too large",
    429: "Too many requests",
    501: "Not available here",
    503: "Temporarily unavailable",
}
ENDED = "Your session has ended, so nothing was changed. Sign in to go on."
# Errors after which the same form can succeed.
AGAIN = (Overloaded, TransientError, LedgerUnavailable)
EXPECTED = tuple(
    kind for kind in errors.HANDLERS if isinstance(kind, type) and kind is not Exception
)


class PageRoute(APIRoute):
    """Answers errors with a page of the same status as the API's error.

    `error_template`: the page, with the values `title` and `message`, and those of `error_values`.
    `error_policy`: its security policy.
    """

    error_template = "error.html"
    error_policy = POLICY

    async def error_values(self, request: Request, error: Exception) -> Mapping[str, Any]:
        """More values of the page: what the form had, and whether it can help to send it again."""
        known = hasattr(request.state, "session")
        own = is_own(request, request.app.state.api.settings)
        form = await unsent_form(request) if known or own else None
        # An error before the check of the CSRF token, such as that of the rate limit, says nothing
        # of where the form is from.
        genuine = getattr(request.state, GENUINE, False)
        again = ((own or genuine) and isinstance(error, AGAIN)) or (
            own and isinstance(error, StaleForm)
        )
        return {"unsent": form, "again": again}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, with errors as pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInNeeded:
                return await sign_in_first(request)
            except EXPECTED as error:
                values = await self.error_values(request, error)
                page = await error_page(request, error, self.error_template, values)
                page.headers["Content-Security-Policy"] = self.error_policy
                return page

        return shown


async def sign_in_first(request: Request) -> Response:
    """A redirect to the sign-in form, which leads back; 401 for a request that changes something.

    The form of that request is carried through the sign-in.

    A script that updates a page gets the redirect as a header, so that the whole page follows it,
    and the form leads back to that page.
    """
    base = base_of(request.app.state.api.settings)
    form = f"{base}/sign-in"
    if request.method != "GET":
        own = is_own(request, request.app.state.api.settings)
        unsent = await unsent_form(request) if own else None
        return show(request, "signin.html", status=401, next="", error=ENDED, unsent=unsent)
    if is_update(request):
        shown = urlsplit(request.headers.get("hx-current-url", ""))
        back = quote(shown._replace(scheme="", netloc="", fragment="").geturl())
        return Response(status_code=401, headers={"HX-Redirect": f"{form}?next={back}"})
    query = f"?{request.url.query}" if request.url.query else ""
    # A proxy in front takes the path of the public URL away.
    path = base + request.url.path.removeprefix("/console")
    return RedirectResponse(f"{form}?next={quote(path + query)}", status_code=303)


async def error_page(
    request: Request, error: Exception, template: str, values: Mapping[str, Any]
) -> Response:
    """The page of an error, with the status and text of the API's response."""
    kind = next(kind for kind in type(error).__mro__ if kind in errors.HANDLERS)
    response = await errors.HANDLERS[kind](request, error)
    title = TITLES.get(response.status_code, "This did not work")
    message = orjson.loads(response.body)["message"]
    page = show(
        request, template, status=response.status_code, title=title, message=message, **values
    )
    if retry_after := response.headers.get("retry-after"):
        page.headers["Retry-After"] = retry_after
    return page

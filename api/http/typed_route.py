"""Routes that check their query string, and whose OpenAPI responses are the types they return.

FastAPI would check and copy each response by its type, which costs more than to write it. Here the
type is only for mypy and for the OpenAPI description; the integration tests compare responses with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import resources
from typing import Any, get_type_hints

import orjson
from fastapi import Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute

from api.http.unknown_fields import check_query

Responses = dict[int | str, dict[str, Any]]


class TypedRoute(APIRoute):
    """Route class that keeps the type of each response by status, and validates none.

    The type is the return annotation of the endpoint, or `response_model` where it returns a
    Response, or several types with several statuses. `models` in `responses` adds other statuses.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        response_model: Any = None,
        responses: Responses | None = None,
        **options: Any,
    ) -> None:
        """Keep the types. FastAPI gets Any for each, so it only writes the response as JSON."""
        self.response_types: dict[int, Any] = {}
        returned = get_type_hints(endpoint, include_extras=True).get("return", Any)
        if response_model is not None and not isinstance(response_model, DefaultPlaceholder):
            returned = response_model
        if not (isinstance(returned, type) and issubclass(returned, Response)):
            self.response_types[options.get("status_code") or 200] = returned
        rest: Responses = {}
        for status, response in (responses or {}).items():
            rest[status] = {key: part for key, part in response.items() if key != "model"}
            if "model" in response:
                self.response_types[int(status)] = response["model"]
        super().__init__(path, endpoint, response_model=Any, responses=rest, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, after a check of the names in the query string."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            check_query(request, self.dependant)
            return await handle(request)

        return checked


def example(package: str, name: str = "example.json") -> Responses:
    """The OpenAPI `responses` of a route, with the example in this file of its package."""
    value = orjson.loads(resources.files(package).joinpath(name).read_bytes())
    return {200: {"content": {"application/json": {"example": value}}}}

"""The app's routes are those of the routers, and are not built again."""

from __future__ import annotations

from api.app import create_app
from api.routers import ROUTERS
from pipeline.settings import Settings


def test_the_app_serves_the_routes_of_all_routers_themselves() -> None:
    """An included router builds its routes again at the first request, on the event loop."""
    served = {id(route) for route in create_app(Settings()).routes}
    assert [r for router in ROUTERS for r in router.routes if id(r) not in served] == []

"""The API process: `python -m api`."""

from __future__ import annotations

import uvicorn

from api.app import create_app
from pipeline import settings, telemetry


def main() -> None:
    configured = settings.load()
    telemetry.configure_logs(configured.log_level, process="api")
    uvicorn.run(
        create_app(configured),
        host=configured.host,
        port=configured.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=20,
    )


if __name__ == "__main__":
    main()

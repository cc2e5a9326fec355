"""Poll /healthz until the input ends, then print the measurements as JSON.

This is another process because threads of a test that sends megabytes would wait for its
interpreter.
"""

from __future__ import annotations

import http.client
import json
import select
import sys
import time
from dataclasses import asdict, dataclass, field

POLL_EVERY_S = 0.02
HOST = "127.0.0.1"


@dataclass
class HealthSamples:
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def main(port: int) -> None:
    measured = HealthSamples()
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    print("watching", flush=True)
    while True:
        began = time.perf_counter()
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                measured.failures.append(str(answer.status))
        except (OSError, http.client.HTTPException) as error:
            measured.failures.append(type(error).__name__)
            connection.close()
        measured.seconds.append(time.perf_counter() - began)
        if select.select([sys.stdin], [], [], POLL_EVERY_S)[0]:
            break
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main(int(sys.argv[1]))

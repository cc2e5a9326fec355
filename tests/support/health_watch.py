"""Poll /healthz until the input ends, then print the measurements as JSON.

A poll is measured by the CPU time that the server's event loop uses until the answer: a poll waits
for the work of others there, and on a busy machine also for other processes, which do not count.

This is another process because threads of a test that sends megabytes would wait for its
interpreter.
"""

from __future__ import annotations

import http.client
import json
import select
import sys
from dataclasses import asdict, dataclass, field

import psutil

POLL_EVERY_S = 0.02
HOST = "127.0.0.1"


@dataclass
class HealthSamples:
    """CPU seconds of the server's event loop during each poll, and the polls without a 200."""

    cpu_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def loop_cpu_s(server: psutil.Process) -> float:
    """CPU seconds of the main thread, in which the event loop runs."""
    [main_thread] = [thread for thread in server.threads() if thread.id == server.pid]
    return float(main_thread.user_time + main_thread.system_time)


def main(port: int, pid: int) -> None:
    """`port`, `pid`: those of the API process."""
    server = psutil.Process(pid)
    measured = HealthSamples()
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    print("watching", flush=True)
    while True:
        began = loop_cpu_s(server)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                measured.failures.append(str(answer.status))
        except (OSError, http.client.HTTPException) as error:
            measured.failures.append(type(error).__name__)
            connection.close()
        measured.cpu_s.append(loop_cpu_s(server) - began)
        if select.select([sys.stdin], [], [], POLL_EVERY_S)[0]:
            break
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

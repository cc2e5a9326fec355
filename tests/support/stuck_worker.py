"""A worker that can be made to hang: SIGUSR2 stops its consumer, SIGALRM its event loop."""

from __future__ import annotations

import gc
import signal
import threading

from workers.__main__ import main
from workers.runtime import LoopThread


def hang(*_: object) -> None:
    threading.Event().wait()


async def hang_here() -> None:
    hang()


def hang_loop(*_: object) -> None:
    for found in gc.get_objects():
        if type(found) is LoopThread:
            found.start(hang_here())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, hang)  # handlers run on the consumer's thread
    signal.signal(signal.SIGALRM, hang_loop)
    main()

"""A worker that can be made to hang: SIGUSR2 stops its consumer, SIGALRM its event loop."""

from __future__ import annotations

import signal
import threading

from workers import runtime
from workers.__main__ import main


class StuckLoop(runtime.LoopThread):
    """Event loop that hangs on SIGALRM."""

    def __init__(self, *, slow_s: float = 1.0) -> None:
        super().__init__(slow_s=slow_s)
        signal.signal(signal.SIGALRM, self.hang)

    def hang(self, *_: object) -> None:
        self.call_soon(hang)


def hang(*_: object) -> None:
    threading.Event().wait()


if __name__ == "__main__":
    runtime.LoopThread = StuckLoop  # type: ignore[misc]
    signal.signal(signal.SIGUSR2, hang)  # signal handlers run on the consumer's thread
    main()

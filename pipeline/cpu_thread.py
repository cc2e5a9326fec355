"""CPU-heavy work beside the event loop, in one thread of the process.

One thread, because each further one would only share the GIL with the loop: the loop then waits for
all of them in turn. So the work of one request delays other large work, and small work hardly.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cpu")


async def beside_loop(work: Callable[[], T], *, inline: bool = False) -> T:
    """The result of `work()`, computed in the thread; `inline`: here, because it is short.

    A thread costs 0.1 ms more, and work of up to about 10 ms may stay on the loop. The work must
    not hold the GIL for long in one call of C code.
    """
    if inline:
        return work()
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_THREAD, run, work)

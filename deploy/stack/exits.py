"""Exit codes of the commands, and the message for each error that ends one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pydantic import ValidationError

from deploy.stack.failure import StackError
from pipeline.domain.errors import InvalidInput
from pipeline.startup import sentence

FAILED, USAGE = 1, 2


def exit_code(action: Callable[[], int]) -> int:
    """The exit code of `action`: its own, 1 for a StackError, 2 for a wrong setting.

    A reader that has enough, such as `head`, ends the command without an error.
    """
    try:
        code = action()
        sys.stdout.flush()  # here a closed pipe can be handled
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the exit
        return 0
    except (InvalidInput, ValidationError) as error:
        print(sentence(error), file=sys.stderr)
        return USAGE
    except StackError as error:
        print(error, file=sys.stderr)
        return FAILED
    return code

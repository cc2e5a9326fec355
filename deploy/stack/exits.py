"""Exit codes of the commands, and the message for each error that ends one."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pydantic import ValidationError

from deploy.stack.failure import StackError
from pipeline import settings
from pipeline.domain.errors import InvalidInput

FAILED, USAGE = 1, 2


def exit_code(action: Callable[[], int]) -> int:
    """The exit code of `action`: its own, 1 for a StackError, 2 for a wrong setting."""
    try:
        return action()
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return USAGE
    except ValidationError as error:
        print(bad_values(error), file=sys.stderr)
        return USAGE
    except StackError as error:
        print(error, file=sys.stderr)
        return FAILED


def bad_values(error: ValidationError) -> str:
    """One line for each invalid variable, without its value, which may be secret."""
    lines = []
    for problem in error.errors():
        name = settings.PREFIX + "__".join(map(str, problem["loc"]))
        lines.append(f"{name.upper()}: {problem['msg']}")
    return "\n".join(lines)

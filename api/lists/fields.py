"""Selection of a row's keys by the option `fields`.

`metadata.x` selects one key of the metadata. Unknown names are ignored, as in the Mem0 Platform,
because clients name fields that do not exist here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.http.limits import MOST_FIELDS

Fields = Annotated[list[str], Field(max_length=MOST_FIELDS)]

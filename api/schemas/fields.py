"""`fields`: the keys of a row that an answer keeps, by the names the row has them under.

`metadata.x` is one key of the metadata. A name that no row has is ignored, as the Mem0 Platform
does: clients name fields of its rows that there are not here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.schemas.limits import MOST_FIELDS

Fields = Annotated[list[str], Field(max_length=MOST_FIELDS)]

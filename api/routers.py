"""All routers of the API: the Mem0 Platform's dialect and our own, and the open-source server's."""

from api.oss.routes import router as open_source
from api.routes import ROUTERS as PLATFORM

ROUTERS = (*PLATFORM, open_source)

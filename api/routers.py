"""All routers of the API: the Mem0 Platform's dialect and our own, and the open-source server's."""

from api.adds.routes import router as adds
from api.audit.routes import router as audit
from api.conflicts.routes import router as conflicts
from api.console.routes import router as console
from api.curator.routes import router as curator
from api.entities.routes import router as entities
from api.erasures.routes import router as erasures
from api.events.routes import router as events
from api.exports.routes import router as exports
from api.graph.routes import router as graph
from api.keys.routes import router as keys
from api.lists.routes import of_owner
from api.lists.routes import router as lists
from api.memories.batch import router as batch
from api.memories.routes import router as memories
from api.oss.routes import router as open_source
from api.private_runs.routes import router as private_runs
from api.profiles.routes import router as profiles
from api.replays.routes import router as replays
from api.search.routes import router as search
from api.suggestions.routes import router as suggestions
from api.summaries.routes import router as summaries
from api.system.routes import router as system
from api.tenants.routes import router as organizations
from api.transfer.routes import router as transfer
from api.user_tokens.routes import router as user_tokens
from api.verification.routes import router as verification
from api.versions.routes import router as versions
from api.webhooks.routes import router as webhooks

# The order matters: a path with a fixed word comes before one with a parameter in its place.
# The app takes over the routes themselves. With include_router() FastAPI builds all of them again
# at the first request (0.6 s on the event loop), and looks each request up twice.
ROUTERS = (
    adds,
    lists,
    search,
    versions,
    memories,
    of_owner,
    batch,
    profiles,
    entities,
    exports,
    graph,
    erasures,
    events,
    replays,
    suggestions,
    curator,
    summaries,
    conflicts,
    organizations,
    keys,
    user_tokens,
    audit,
    webhooks,
    private_runs,
    transfer,
    verification,
    console,
    system,
    open_source,
)

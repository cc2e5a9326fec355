"""Request bodies of clients, with their JSON names.

Source: the Mem0 Python, TypeScript and CLI clients.
"""

from api.schemas.adds import MOST_MESSAGES, AddRequest
from api.schemas.body import LONGEST_ID, EntityId, OwnRequest, Request
from api.schemas.edits import (
    NOTHING_TO_CHANGE,
    BatchDeleteRequest,
    BatchUpdateRequest,
    FeedbackRequest,
    UpdateRequest,
)
from api.schemas.exports import ExportReadRequest, ExportRequest, QuestionRequest, SummaryRequest
from api.schemas.messages import MessageIn
from api.schemas.owners import RegisterRequest
from api.schemas.reads import (
    LONGEST_WAIT_S,
    ListRequest,
    OlderSearchRequest,
    ReadRequest,
    SearchRequest,
)
from api.schemas.recourse import ReplayManyRequest, ReplayRequest, UndoRequest
from api.schemas.snapshots import SnapshotQuery

__all__ = [
    "LONGEST_ID",
    "LONGEST_WAIT_S",
    "MOST_MESSAGES",
    "NOTHING_TO_CHANGE",
    "AddRequest",
    "BatchDeleteRequest",
    "BatchUpdateRequest",
    "EntityId",
    "ExportReadRequest",
    "ExportRequest",
    "FeedbackRequest",
    "ListRequest",
    "MessageIn",
    "OlderSearchRequest",
    "OwnRequest",
    "QuestionRequest",
    "ReadRequest",
    "RegisterRequest",
    "ReplayManyRequest",
    "ReplayRequest",
    "Request",
    "SearchRequest",
    "SnapshotQuery",
    "SummaryRequest",
    "UndoRequest",
    "UpdateRequest",
]

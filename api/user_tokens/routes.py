"""Users' tokens: create, list and revoke them with an API key; download what is known of a user."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from api.audit import recording as audit
from api.auth.tenant import Caller, Validity
from api.auth.users import OfUser, UserReading
from api.http.ids import uuid
from api.http.shared_responses import DoneJson, ResultsJson
from api.http.streams import while_valid
from api.http.strict_json import StrictJson
from api.user_tokens import responses as user_token_responses
from api.user_tokens.download import AS_FILE, download
from api.user_tokens.requests import UserTokenRequest
from api.user_tokens.responses import (
    NewUserTokenJson,
    RevokedTokensJson,
    UserDownloadJson,
    UserTokenJson,
)
from pipeline.domain.errors import InvalidInput, NotFound
from pipeline.domain.filters import require_id

router = APIRouter(tags=["tenants"], route_class=StrictJson)


@router.post("/v1/user-tokens/")
async def make_user_token(request: UserTokenRequest, call: Caller) -> NewUserTokenJson:
    """Create a token with which a browser reads, and with the rights `correct` and `delete`
    changes, the memories of one user. `token` is shown only in this response.

    It ends after `expires_in_s`, with the key that made it, when it is revoked, or when the user is
    erased.
    """
    made, secret = await call.ledger.user_tokens.make(
        call.grant, request.user_id, request.rights, request.lifetime
    )
    audit.about(made.id)
    return {**user_token_responses.token(made), "token": secret.key}


@router.get("/v1/user-tokens/")
async def list_user_tokens(call: Caller, user_id: str | None = None) -> ResultsJson[UserTokenJson]:
    """The valid tokens of the project, or of one user, newest first, at most 200."""
    rows = await call.ledger.user_tokens.of(call.project.id, user_id)
    return {"results": [user_token_responses.token(row) for row in rows]}


@router.delete("/v1/user-tokens/{token_id}/")
async def revoke_user_token(token_id: str, call: Caller) -> DoneJson:
    """Revoke a token. Other API processes may accept it for five more seconds."""
    await call.ledger.user_tokens.revoke(call.project.id, uuid("token_id", token_id))
    call.api.keys.forget()
    return {"message": "Token revoked."}


@router.delete("/v1/user-tokens/")
async def revoke_user_tokens(
    call: Caller, user_id: Annotated[str, Query(min_length=1)]
) -> RevokedTokensJson:
    """Revoke all tokens of a user."""
    revoked = await call.ledger.user_tokens.revoke_all(call.project.id, user_id)
    call.api.keys.forget()
    return {"message": "Tokens revoked.", "revoked": revoked}


@router.get("/v1/users/{user_id:path}/download/", response_model=UserDownloadJson)
async def download_user(
    user_id: str, call: UserReading, user: OfUser, valid: Validity
) -> StreamingResponse:
    """Everything that is stored of a user as one JSON file: memories with their source messages,
    and all messages. If a read fails, or the key is revoked or expires, it ends early and is no
    valid JSON.
    """
    if user is not None and user_id != user:
        raise NotFound("A user's token downloads only its own user.")
    if not user_id.strip():
        raise InvalidInput("Give the id of a user.")
    parts = while_valid(download(call, require_id(user_id)), valid)
    return StreamingResponse(parts, headers=AS_FILE)

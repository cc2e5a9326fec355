"""The tools as the official SDK serves them. Imported by the first request to /mcp only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from api.mcp.tools import TOOLS, Asked

# How the API is asked from the inside, with the headers of the request that came from outside.
Ask = Callable[[Asked, Request], Awaitable[httpx.Response]]
Context = ServerRequestContext[Any, Any]

ABOUT = (
    "Long-term memory. Add what is worth keeping with add_memory, look it up with search_memories. "
    "Both need to know whose: user_id, agent_id, app_id or run_id."
)
BY_NAME = {tool.name: tool for tool in TOOLS}
LISTED = [
    types.Tool(name=tool.name, description=tool.about, input_schema=tool.schema) for tool in TOOLS
]


def build(ask: Ask) -> StreamableHTTPSessionManager:
    """One a process. Stateless, and answers in plain JSON: there is no session to lose."""

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=LISTED)

    async def call_tool(
        context: Context, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = BY_NAME.get(asked.name)
        if tool is None or context.request is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {asked.name}.")
        answer = await ask(tool.asks(asked.arguments or {}), context.request)
        said = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[said], is_error=answer.is_error)

    server: Server[Any] = Server(
        "memlane", instructions=ABOUT, on_list_tools=list_tools, on_call_tool=call_tool
    )
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)

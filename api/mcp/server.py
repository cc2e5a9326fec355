"""The tools, served by the official SDK. Imported only by the first request to /mcp."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import orjson
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from api.mcp.compact import compact
from api.mcp.tools import TOOLS, ApiRequest, Tool
from pipeline.domain.errors import InvalidInput

# Calls the REST API in this process, with the key of the MCP request.
Ask = Callable[[ApiRequest, Request], Awaitable[httpx.Response]]
Context = ServerRequestContext[Any, Any]

ABOUT = (
    "Long-term memory. Add what is worth keeping with add_memory, look it up with search_memories. "
    "Both need at least one id: user_id, agent_id, app_id or run_id."
)
BY_NAME = {tool.name: tool for tool in TOOLS}
# The SDK logs the end of each request at info.
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)


def listed(tool: Tool) -> types.Tool:
    """The tool as MCP lists it."""
    hints = types.ToolAnnotations(
        read_only_hint=tool.reads, destructive_hint=tool.destroys, open_world_hint=False
    )
    return types.Tool(
        name=tool.name, description=tool.about, input_schema=tool.schema, annotations=hints
    )


def build(ask: Ask, version: str) -> StreamableHTTPSessionManager:
    """The session manager of a process: stateless, with JSON responses."""

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[listed(tool) for tool in TOOLS])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None or context.request is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}.")
        try:
            request = tool.request(params.arguments or {})
        except InvalidInput as error:
            return _result({"error": str(error)}, is_error=True)
        answer = await ask(request, context.request)
        return _result(compact(answer.json()), is_error=answer.is_error)

    server: Server[Any] = Server(
        "memlane",
        version=version,
        instructions=ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)


def _result(body: object, *, is_error: bool) -> types.CallToolResult:
    content = types.TextContent(type="text", text=orjson.dumps(body).decode())
    return types.CallToolResult(content=[content], is_error=is_error)

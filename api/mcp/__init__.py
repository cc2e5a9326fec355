"""MCP at /mcp: twelve tools for agents, each of which is a request to this REST API.

    agent ── tools/call ──► endpoint ──► server (the SDK) ──► tools: name → request ──► REST

So a tool has the rights of its key over REST, and returns the same errors. Stateless: any API
process can answer any request.
"""

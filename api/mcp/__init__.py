"""MCP at /mcp: eleven tools for agents, each a request to this very API.

    agent ── tools/call ──► endpoint ──► server (the SDK) ──► tools: name → request ──► REST, inside

So a tool can do what its key may do over REST, is refused in the same words, and nothing has to be
kept the same twice. Stateless: any process of any number answers any request.
"""

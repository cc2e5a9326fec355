"""The memory proxy: for clients in which only the base URL of the provider can be set.

    client ──► proxy ── search ──► Memlane
                 └─ forward, with memories at the end of the last user message ──► provider
    client ◄── the provider's bytes, unchanged ──┘
                 after the last byte: one add through the outbox ──► Memlane

`dialects` reads and changes the bodies, `recall` finds memories, `app` forwards.
"""

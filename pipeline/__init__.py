"""Memlane's product: how a conversation turn becomes memory. Start reading here.

    add ──► one commit: event + messages                 lanes/accept, lanes/group_commit
                  │ hint: (lane, fence, stage)
                  ▼
    extract ──► facts                    model            ingest/stages/extract
    retrieve ──► vectors, neighbours     embedder, index  ingest/stages/retrieve
    consolidate ──► ADD UPDATE DELETE NOOP, with reasons  ingest/stages/consolidate
    apply ──► memories, history, receipts                 ingest/stages/apply, domain/consolidation
    relate ──► entities and relations    model            ingest/stages/relate
       └──► settle: SUCCEEDED, next batch of the lane     ingest/runner

A lane is a scope's queue; the state machine that moves it is lanes/store, one statement per file
in lanes/sql. A stage only reads and computes; its output, its changes and the lane's next stage
are one commit. So any task may run twice, late, or in a process that is killed.

A feature is a folder with the same file names as its siblings: service (use-cases), store (SQL),
sql/ (statements), ports (the stores of the ledger that the feature uses).

The work of an event
    ingest/  lanes/                 accept an add and run its stages; the state machine of a queue
    models/                         questions and prompts, circuit breaker, recorded answers
    events/  replays/               list, cancel, redrive, undo; process a scope again in a shadow

What is stored, and how it is found
    memories/  versions/            memories and their history; earlier states, restore
    turns/  graph/                  messages as they were said; entities and relations
    search/                         ranked memories and turns: candidates, words, ranking
    summaries/  profiles/           summaries of conversations; profiles of users
    suggestions/  conflicts/        changes and contradictions that a person decides
    curator/                        runs that look through memories and make suggestions
    vector_index/  reindex/         a projection of the ledger; a new index beside the live one

Administration
    tenants/  webhooks/             organizations, projects, members, API keys; deliveries
    erasure/  transfer/             deletion for good; export and import
    accounting/  seals/             the balance of events, and costs; tamper evidence
    backup/  health/                the ledger's side of backup and restore; doctor and repair

Below all of them
    ledger/                         PostgreSQL: engine, statements, tables, migrations
    adapters/  ports                vendors, and the protocols they implement
    domain/                         values; rules of consolidation and of the graph, without I/O
    text/                           language: statements, times, relations, terms
    stores  bootstrap  settings     all stores; the only place that chooses adapters; all settings
"""

__version__ = "0.2.0"

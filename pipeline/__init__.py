"""Memlane's product: how a conversation turn becomes memory. Start reading here.

    add ──► one commit: event + messages                 lanes/accept, lanes/group_commit
                  │ hint: (lane, fence, stage)
                  ▼
    extract ──► facts                    model            ingest/stages/extract
    retrieve ──► vectors, neighbours     embedder, index  ingest/stages/retrieve
    consolidate ──► ADD UPDATE DELETE NOOP, with reasons  ingest/stages/consolidate
    apply ──► memories, history, receipts                 ingest/stages/apply, domain/reconcile
    relate ──► entities and relations    model            ingest/stages/relate
       └──► settle: SUCCEEDED, next batch of the lane     ingest/runner

A lane is a scope's queue; the state machine that moves it is lanes/store, one statement per file
in lanes/sql. A stage only reads and computes; its output, its changes and the lane's next stage
are one commit. So any task may run twice, late, or in a process that is killed.

Each feature is a folder with the same file names: service (use-cases), store (the only place with
SQL), sql/ (statements), ports (the stores of the ledger that the feature uses).

    ingest/  lanes/       accept an add and run its stages; the state machine of a scope's queue
    search/               ranked memories and turns: candidates, fusion, cutoff, rerank
    memories/  graph/  turns/       what is stored, and its history
    events/  replays/     list, cancel, redrive, undo; process a whole scope again, in a shadow
    tenants/  erasure/    organizations, projects, members, API keys; deletion for good
    webhooks/             signatures, deliveries, retries, dead letters
    vector_index/  reindex/         a projection of the ledger; a new index beside the live one
    models/               questions and prompts, circuit breaker, recorded answers
    accounting/           the balance of events, and costs
    ledger/               PostgreSQL: engine, statements, tables, migrations
    adapters/  ports      vendors, and the protocols they implement
    domain/  text/        values and pure rules; language
    bootstrap  stores     build it all: the only place that chooses adapters
"""

__version__ = "0.2.0"

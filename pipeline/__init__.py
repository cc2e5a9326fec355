"""Memlane's product: how a conversation turn becomes memory. Start reading here.

    accept ──► one commit: event + messages              ingest.accept, ledger/group_commit
                  │ hint: (lane, fence, stage)
                  ▼
    extract ──► facts                    model            stages/extract
    retrieve ──► vectors, neighbours     embedder, index  stages/retrieve
    consolidate ──► ADD UPDATE DELETE NOOP, with reasons  stages/consolidate
    apply ──► memories, history, receipts                 stages/apply, ledger/changes
    relate ──► entities and relations    model            stages/relate
       └──► settle: SUCCEEDED, next batch of the lane     ingest.run_stage

A lane is a scope's queue; the state machine that moves it is ledger/lanes, a statement a file in
ledger/sql. A stage only reads and thinks; what it puts out, what it changes and the lane's next
stage are one commit. So any task may run twice, late, or in a process that is killed.

    domain        values            errors       what went wrong, by what helps
    ports         promises          adapters/    who keeps them, and their fakes
    ledger/       the only truth    vectors      the index, a projection of it
    search        queries           selection, reranking   what comes back, and in which order
    memories      edits by people
    events        cancel, replay, undo  reindexing   a new index beside the old one
    replays       a whole scope again, in a shadow, by the models it asks for: choice, recorded
    prompts/      words for models  prompted     the three questions, and their answers read back
    bootstrap     puts it together; the only place that chooses adapters
"""

__version__ = "0.1.0"

"""The tables. PostgreSQL is the only source of truth; broker and vectors are rebuilt from it.

    organizations ─< projects ─< members ─< api_keys   access; a key need not belong to a member
    api_keys ─< console_sessions                   sessions of the console, one-time links
    api_keys ─< user_tokens                        access of a user to their own memories
    projects ─< idempotency_keys                   keys that clients send to repeat an add safely
    projects ─< shadows                            replays of a scope, each a project of its own
    projects ─< private_runs                       sessions that are temporary or incognito
    projects ─< profiles ─< profile_fields         fields of users, filled from memories
    projects ─< profile_jobs                       requests to generate profiles
    projects ─< owners                             names and metadata of users, agents, apps, runs
    projects ─< lanes ─< events ─< messages        the turns, in order (lane, seq, ordinal)
                  │         │         └─── turn_vectors   vectors of turns for searches
                  │         ├──< receipts          the outcome of each fact
                  │         ├──< graph_receipts    its effect on the graph
                  │         ├──< cleared_lanes     the turns that a delete_all hid
                  │         ├─── stage_runs        output and cost of each stage of its batch
                  │         └─── failed_runs       cost of failed tries
                  ├──< memories ─< memory_history  current state, and the history of changes
                  │         ├──< past_states       its earlier states, with their vectors
                  │         ├─── feedback          users' opinions
                  │         ├─── memory_accesses   number of searches that returned it
                  │         └──< memory_reads      a sample of these searches
                  ├──< suggestions                 changes that wait for a person
                  ├──< conflicts ─< conflict_members   statements that cannot both hold
                  ├──< curator_runs ─< curator_steps   runs that look for suggestions
                  ├──< summaries, summary_states   rolling summaries of the conversation
                  ├──< kept_answers                models' answers to dry runs, for the real run
                  ├──< seals, seal_…               hash chains, of projects with tamper evidence
                  └──< entities ─< relations       the graph, bi-temporal
    projects ─< audit_entries                      who changed what, and when
    projects ─< saved_views, queue_samples         views and charts of the console
    projects ─< erasures                           receipts of erasures: see erasure
    projects ─< books, book_entries                numbers of rows: see tables.balance
    graph_mirrors, graph_outbox                    changes for a graph server: see tables.graph
    projects ─< usage_daily                        costs of model calls: see tables.costs

All times are the database's: leases, waits and timestamps never depend on a worker's clock.
"""

from __future__ import annotations

from pipeline.ledger.tables.balance import book_entries, books
from pipeline.ledger.tables.circuits import cooldowns
from pipeline.ledger.tables.columns import metadata
from pipeline.ledger.tables.conflicts import conflict_members, conflicts
from pipeline.ledger.tables.console import audit_entries, queue_samples, saved_views
from pipeline.ledger.tables.costs import event_costs, usage_daily
from pipeline.ledger.tables.curator import curator_runs, curator_steps
from pipeline.ledger.tables.events import cleared_lanes, events, receipts
from pipeline.ledger.tables.graph import (
    entities,
    graph_mirrors,
    graph_outbox,
    graph_receipts,
    relations,
)
from pipeline.ledger.tables.idempotency import idempotency_keys
from pipeline.ledger.tables.kept_answers import kept_answers
from pipeline.ledger.tables.lanes import lanes
from pipeline.ledger.tables.memories import (
    ACTIVE,
    feedback,
    memories,
    memory_accesses,
    memory_history,
    memory_reads,
    past_states,
)
from pipeline.ledger.tables.private_runs import private_runs
from pipeline.ledger.tables.profiles import profile_fields, profile_jobs, profiles
from pipeline.ledger.tables.replays import shadows
from pipeline.ledger.tables.seals import (
    seal_buckets,
    seal_checkpoints,
    seal_heads,
    seal_projects,
    seal_queue,
    seals,
)
from pipeline.ledger.tables.stage_runs import answer_sources, failed_runs, stage_runs
from pipeline.ledger.tables.suggestions import suggestions
from pipeline.ledger.tables.summaries import summaries, summary_states
from pipeline.ledger.tables.tenants import (
    api_keys,
    console_sessions,
    members,
    organizations,
    owners,
    projects,
    user_tokens,
)
from pipeline.ledger.tables.term_cuts import term_cuts
from pipeline.ledger.tables.turns import messages, turn_vectors
from pipeline.ledger.tables.vectors import (
    compactions,
    own_collections,
    rebuilt,
    vector_collections,
    vector_indexes,
)

"""The whole of Memlane on one machine, as real processes under one supervisor.

    python -m deploy.stack up | down | status | logs | run | reindex

    up ──► supervisor (detached; its lock file makes a second one impossible)
             ├── postgres ─┐ at once, in parallel
             ├── redis     │
             ├── chroma    │
             │             └► migrate (once postgres answers: tables, first project and key)
             ├── api            ─┐
             ├── worker-1 … N    ├ after migrate
             └── sweeper        ─┘

Stopped in three ranks: api, workers and sweeper; then chroma, redis, postgres one by one. What dies
is restarted. A server whose MEMLANE_…_URL is given is not started. Who dies with whom: every child
asks the kernel to be signalled when the supervisor is gone (launch.py), so a killed supervisor
leaves no orphans.

In the data directory:

    api_key  postgres_password  redis_password      secrets, mode 600
    postgres/  redis/  chroma/                      what the servers keep
    logs/NAME.log                                   one file a process
    run/NAME.pid  run/NAME.ready                    one pid a file, and nothing else in it
    run/state.json  run/ports.json  run/lock        the supervisor's own notes
    run/metrics/                                    counters of all processes, for /metrics

Where things are:

    control      up, down, status, logs: what a person types | rebuild: reindex
    supervisor   the order of things | child: one process kept alive | journal: state.json
    programs     which processes there are, as data
    servers      Postgres, Redis, Chroma; each also usable alone, in tests: start, stop, kill, url
    fingerprint  with which settings it was started | check: do servers and models answer?
    identity     is this pid still who it was? | ports | layout | launch: the last step before exec
"""

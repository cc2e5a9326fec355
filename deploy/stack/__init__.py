"""The whole of Memlane on one machine, as real processes under one supervisor.

    memlane up ──► supervisor (detached; its lock file prevents a second one)
             ├── postgres ─┐ at once, in parallel
             ├── redis     │
             ├── chroma    │
             │             └► migrate (once postgres answers: tables, first project and key)
             ├── api            ─┐ at once; they load their modules
             ├── worker-1 … N    ├ and wait for run/start, which is
             └── sweeper        ─┘ created after migrate

`down` stops api, workers and sweeper first, then chroma, redis and postgres one by one. A process
that dies is restarted. A server whose MEMLANE_…_URL is set is not started. The kernel signals every
child when the supervisor ends (launch.py), so a killed supervisor leaves no orphans.

In the data directory:

    api_key  postgres_password  redis_password      secrets, mode 600
    postgres/  redis/  chroma/                      data of the servers
    logs/NAME.log                                   one file for each process
    run/NAME.pid  run/NAME.ready                    one pid in each file, and nothing else
    run/state.json  run/ports.json  run/lock        the supervisor's own state
    run/metrics/                                    counters of all processes, for /metrics

Modules:

    control      the commands up, down, status and logs | rebuild: the command reindex
    supervisor   order of start and stop | child: one supervised process | journal: state.json
    programs     the processes, as data
    servers      Postgres, Redis, Chroma; tests also use them alone: start, stop, kill, url
    fingerprint  hashes of the settings at start | check: do servers and models answer?
    identity     pids that may have been reused | ports | layout | launch: setup before exec
"""

"""Health of the ledger: what `memlane doctor` reads, and what `memlane repair` does.

store    clock, connections, indexes, lanes, books and seals, each as figures
repairs  index builds, lanes queued again, corrections of the books; each can run at any time
"""

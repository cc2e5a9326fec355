"""Tamper evidence: hash chains over events, receipts and history, and signed heads over the chains.

keys          the keys that sign, and the message of each signature
chain         the hash chain of a lane, and the entries that cover erased and replayed rows
heads         the signed head of a project: one number over the heads of all its lanes
checkpoints   recorded heads, for places outside the database
entries       entries that erasures and replays queue in their own transaction
sealing       the sweeper's work: take rows from the queue, verify the heads, append, sign
verification  the check of a project, page by page
store         what the API and the sweeper call
"""

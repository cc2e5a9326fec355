"""The REST API of Mem0's open-source server, on the same port as the Mem0 Platform's.

Plugins that are configured with the address of a self-hosted Mem0 server speak this dialect: paths
without a version, the key in `X-API-Key`, and an add that answers with its results. Each request is
translated into one of our own, so rights, limits and receipts are the same.
"""

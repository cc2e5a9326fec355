"""The `memlane` command.

app          the commands and what they call | context: the options before them
connection   the API over HTTP
keys  events  replays      groups of commands, each on one part of the API
doctor       checks of this machine and its settings
"""

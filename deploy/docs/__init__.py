"""Reference pages generated from code: `python -m deploy.docs` writes them into docs/reference.

members      {name: text below it} of a class, the source of most descriptions
tables       Markdown tables
settings     docs/reference/settings.md     from pipeline.settings
failures     docs/reference/failures.md     from states, failure codes, HTTP errors, error tree
metrics      docs/reference/metrics.md      from pipeline.telemetry
operations   docs/reference/operations.md   from the OpenAPI description
commands     docs/reference/cli.md          from the `memlane` command
export_format  docs/reference/export-format.md  from the lines of an export
"""

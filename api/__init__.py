"""The HTTP edge: the Mem0 Platform's REST API over the pipeline's use-cases.

A feature is a folder with the same file names: `routes.py` (its HTTP routes), `requests.py` (what a
client sends), `responses.py` (what is sent back: the shapes of the OpenAPI description). What the
features share is in http/ and auth/; the dialect of the Mem0 server is in oss/, and MCP in mcp/.
"""

from pipeline.collector import collect_rarely_in_a_program

collect_rarely_in_a_program()

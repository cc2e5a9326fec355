"""The HTTP edge: the Mem0 Platform's REST API over the pipeline's use-cases."""

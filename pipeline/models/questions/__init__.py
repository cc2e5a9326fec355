"""Questions for a language model: for each one its prompt, its answer model and its parser."""

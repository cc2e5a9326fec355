"""Questions for a language model: the schema and the parser of each answer."""

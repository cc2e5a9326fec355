"""Rolling summaries of conversations, for extraction: made in a task of their own."""

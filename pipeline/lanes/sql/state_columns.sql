-- The state of a memory: columns of memories and past_states with the same names.
text, terms, metadata, categories, attributed_to, state, immutable, expiration_date, version,
event_id, message_ordinal, said_at, valid_from, kind, memory_type, subject, attribute, slot,
speaker, cardinality, confidence, superseded_by, appended, created_at

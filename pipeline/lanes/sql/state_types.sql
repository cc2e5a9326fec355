-- The types of `state_columns`, and the vector, in the rows of a parameter.
text text, terms text[], metadata jsonb, categories text[], attributed_to text, state text,
immutable boolean, expiration_date date, version integer, event_id uuid, message_ordinal smallint,
said_at timestamptz, valid_from timestamptz, kind text, memory_type text, subject text,
attribute text, slot text, speaker text, cardinality text, confidence float8, superseded_by uuid,
appended boolean, created_at timestamptz, embedding text

-- Write new states of memories, and their history. A memory whose version has changed since the
-- plan is skipped (optimistic lock): the caller counts the returned rows. What the history lacks is
-- in the past state of the version before the event; once that is deleted, these columns stay.
-- Lock order: pipeline/ledger/locks.py.
WITH state AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:states AS jsonb)) AS s (
        id uuid, version integer, former_version integer, outcome text, old_text text, state text,
        text text, text_hash text, terms text[], metadata jsonb, expiration_date date, event_id uuid,
        message_ordinal smallint, said_at timestamptz, valid_from timestamptz, structure jsonb,
        slot text, embedding text
    )
), locked AS MATERIALIZED (
    SELECT m.id FROM memories m JOIN state s ON s.id = m.id AND m.version = s.version - 1
    ORDER BY m.id
    FOR UPDATE OF m
), former AS MATERIALIZED (
    SELECT locked.id, past.*
    FROM locked JOIN state s USING (id), LATERAL (
        SELECT p.event_id, p.message_ordinal, p.categories, p.attributed_to, p.appended, p.edited_at,
               p.said_at
        FROM past_states p
        WHERE p.memory_id = s.id AND p.version = s.former_version
        ORDER BY p.replaced_at DESC
        LIMIT 1
    ) past
), changed AS (
    UPDATE memories SET
        state = s.state, text = s.text, text_hash = coalesce(decode(s.text_hash, 'hex'), memories.text_hash),
        terms = coalesce(s.terms, memories.terms), metadata = s.metadata,
        expiration_date = s.expiration_date, version = s.version, updated_at = now(),
        -- After a person's change, the history names no event; the memory keeps that of its text.
        event_id = CASE WHEN f.id IS NULL THEN s.event_id ELSE f.event_id END,
        message_ordinal = CASE WHEN f.id IS NULL THEN s.message_ordinal ELSE f.message_ordinal END,
        -- A repetition had moved it, which has no version.
        said_at = greatest(s.said_at, f.said_at),
        valid_from = s.valid_from, superseded_by = NULL,
        forgotten_at = CASE WHEN s.state = 'RETIRED' THEN memories.forgotten_at END, kind = s.structure ->> 'kind',
        memory_type = s.structure ->> 'memory_type', subject = s.structure ->> 'subject',
        attribute = s.structure ->> 'attribute', slot = s.slot, cardinality = s.structure ->> 'cardinality',
        speaker = s.structure ->> 'speaker',
        confidence = (s.structure ->> 'confidence')::float8,
        categories = coalesce(f.categories, memories.categories),
        attributed_to = coalesce(f.attributed_to, memories.attributed_to),
        appended = coalesce(f.appended, memories.appended),
        edited_at = CASE WHEN f.id IS NULL THEN memories.edited_at ELSE f.edited_at END,
        embedding = coalesce(decode(s.embedding, 'base64'), memories.embedding),
        embedder = CASE WHEN s.embedding IS NULL THEN memories.embedder
                        ELSE CAST(:embedder AS text) END
    FROM locked JOIN state s USING (id) LEFT JOIN former f USING (id)
    WHERE memories.id = locked.id
    RETURNING memories.id, memories.project_id, memories.temporary
)
INSERT INTO memory_history (
    memory_id, version, project_id, event, old_text, new_text, metadata, expiration_date, reason,
    undoes, key_id, said_at, valid_from, structure, temporary
)
SELECT s.id, s.version, c.project_id, s.outcome, s.old_text,
       CASE WHEN s.state = 'ACTIVE' THEN s.text END, s.metadata, s.expiration_date,
       CAST(:reason AS text), CAST(:undoes AS uuid), CAST(:key_id AS uuid), s.said_at, s.valid_from,
       s.structure, c.temporary
FROM changed c JOIN state s USING (id)
RETURNING memory_id

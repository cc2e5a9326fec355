-- Write a batch's changes of memories, receipts, output and the lane's next stage: one commit, or
-- nothing. `seen`: the versions of the memories that the changes were computed from (optimistic
-- lock). If a person has changed one since, nothing is written and the stage runs again.
-- The project's webhooks, if any, get a delivery for each change. `ended`: relations that end with
-- their memories, or pass to another memory, if no stage of the graph follows.
-- Lock order: pipeline/ledger/locks.py.
WITH lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    FOR UPDATE
), seen AS (
    SELECT * FROM unnest(CAST(:seen_ids AS uuid[]), CAST(:seen_versions AS integer[]))
        AS s (id, version)
), still AS MATERIALIZED (
    SELECT m.id
    FROM lane JOIN memories m ON m.lane_id = lane.id JOIN seen s ON s.id = m.id
    WHERE m.version = s.version
    ORDER BY m.id
    FOR UPDATE OF m
), advanced AS (
    UPDATE lanes SET
        {next_stage.sql}
    FROM lane
    WHERE lanes.id = lane.id AND (SELECT count(*) FROM still) = (SELECT count(*) FROM seen)
    RETURNING lanes.id AS lane_id, lanes.project_id, lanes.user_id, lanes.agent_id, lanes.app_id,
              lanes.run_id, lanes.temporary, lanes.batch_id
), state AS (
    SELECT * FROM jsonb_to_recordset(CAST(:memories AS jsonb)) AS s (
        id uuid, text_hash text, {state_types.sql}
    )
), changed AS (
    UPDATE memories SET
        text = s.text,
        -- A memory that an edit gave the text of another one has a hash of its own, and keeps it.
        text_hash = CASE WHEN memories.text = s.text THEN memories.text_hash
                         ELSE decode(s.text_hash, 'hex') END,
        terms = s.terms, metadata = s.metadata,
        attributed_to = s.attributed_to, state = s.state, immutable = s.immutable,
        expiration_date = s.expiration_date, version = s.version, event_id = s.event_id,
        message_ordinal = s.message_ordinal, said_at = s.said_at, valid_from = s.valid_from,
        superseded_by = s.superseded_by, appended = s.appended, kind = s.kind, memory_type = s.memory_type,
        subject = s.subject, attribute = s.attribute, slot = s.slot, cardinality = s.cardinality, speaker = s.speaker,
        confidence = s.confidence,
        -- A later statement of the same moves `said_at` alone: no change for a reader.
        updated_at = CASE WHEN memories.version = s.version THEN memories.updated_at ELSE now() END,
        categories = s.categories,
        embedding = coalesce(decode(s.embedding, 'base64'), memories.embedding),
        embedder = CASE WHEN s.embedding IS NULL THEN memories.embedder
                        ELSE CAST(:embedder AS text) END
    FROM advanced, state s
    WHERE memories.id = s.id AND s.id IN (SELECT id FROM seen)
), born AS (
    INSERT INTO memories (
        id, project_id, lane_id, user_id, agent_id, app_id, run_id, text_hash, {state_columns.sql},
        embedding, embedder
    )
    SELECT s.id, h.project_id, h.lane_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           decode(s.text_hash, 'hex'), {state_columns.sql}, decode(s.embedding, 'base64'),
           CAST(:embedder AS text)
    FROM advanced h, state s
    WHERE s.id NOT IN (SELECT id FROM seen)
), passed AS (
    -- States that a later change of this batch replaced. They were current at no time, so their
    -- interval is empty; reads of the world's time need them.
    INSERT INTO past_states (
        memory_id, project_id, lane_id, user_id, agent_id, app_id, run_id, {state_columns.sql},
        pinned, embedding, embedder, updated_at, stored_at, replaced_at
    )
    SELECT s.id, h.project_id, h.lane_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           {state_columns.sql}, false, coalesce(decode(s.embedding, 'base64'), ''),
           CASE WHEN s.embedding IS NULL THEN '' ELSE CAST(:embedder AS text) END,
           now(), now(), now()
    FROM advanced h, jsonb_to_recordset(CAST(:passed AS jsonb)) AS s (id uuid, {state_types.sql})
), entry AS (
    SELECT * FROM jsonb_to_recordset(CAST(:history AS jsonb)) AS p (
        memory_id uuid, version integer, outcome text, old_text text, new_text text,
        metadata jsonb, expiration_date date, reason text, event_id uuid,
        message_ordinal smallint, said_at timestamptz, valid_from timestamptz, structure jsonb
    )
), remembered AS (
    INSERT INTO memory_history (
        memory_id, version, project_id, event, old_text, new_text, metadata, expiration_date,
        reason, event_id, message_ordinal, said_at, valid_from, structure, temporary
    )
    SELECT p.memory_id, p.version, h.project_id, p.outcome, p.old_text, p.new_text, p.metadata,
           p.expiration_date, p.reason, p.event_id, p.message_ordinal, p.said_at,
           p.valid_from, p.structure, h.temporary
    FROM advanced h, entry p
), news AS (
    SELECT 'memory_' || lower(outcome) AS event_type, jsonb_build_object(
        'id', memory_id, 'event', outcome,
        'data', jsonb_build_object(
            'memory', coalesce(new_text, old_text),
            'old_memory', CASE outcome WHEN 'UPDATE' THEN old_text END),
        'event_id', event_id) AS details
    FROM entry
    UNION ALL
    SELECT 'memory_categorize', jsonb_build_object(
        'memory_id', id, 'event', 'CATEGORIZE', 'categories', categories, 'event_id', event_id)
    FROM state WHERE state = 'ACTIVE' AND cardinality(categories) > 0
), announced AS (
    INSERT INTO webhook_deliveries (id, webhook_id, project_id, lane_id, event_type, body)
    SELECT gen_random_uuid(), w.id, h.project_id, h.lane_id, news.event_type,
           jsonb_strip_nulls(jsonb_build_object('event_details', news.details || jsonb_build_object(
               'user_id', h.user_id, 'agent_id', h.agent_id, 'app_id', h.app_id,
               'run_id', h.run_id)))::text
    FROM advanced h
    JOIN webhooks w ON w.project_id = h.project_id AND w.is_active
    JOIN news ON news.event_type = ANY (w.event_types)
    -- As the foreign key does: a webhook that is deleted at the same time gets no delivery.
    FOR KEY SHARE OF w
), receipt_line AS (
    -- The lines of a replayed event are appended to those of its first run.
    INSERT INTO receipts (
        event_id, ordinal, outcome, memory_id, text, previous_text, reason, message_ordinal,
        suggestion_id, conflict_id
    )
    SELECT l.event_id,
           (SELECT coalesce(max(o.ordinal), -1) FROM receipts o WHERE o.event_id = l.event_id)
               + row_number() OVER (PARTITION BY l.event_id ORDER BY l.place),
           l.outcome, l.memory_id, l.text, l.previous_text, l.reason, l.message_ordinal,
           l.suggestion_id, l.conflict_id
    FROM advanced h, jsonb_to_recordset(CAST(:receipt AS jsonb)) AS l (
        place integer, event_id uuid, outcome text, memory_id uuid, text text, previous_text text,
        reason text, message_ordinal smallint, suggestion_id uuid, conflict_id uuid
    )
), withheld AS (
    -- The same change of the same versions is suggested once, even after a person has decided. One
    -- whose event was undone is open again.
    INSERT INTO suggestions (
        id, project_id, lane_id, kind, origin, event_id, fact_text, targets, proposed_text, reason,
        content_hash
    )
    SELECT w.id, h.project_id, h.lane_id, w.kind, 'event', w.event_id, w.fact_text, w.targets,
           w.proposed_text, w.reason, decode(w.content_hash, 'hex')
    FROM advanced h, jsonb_to_recordset(CAST(:suggestions AS jsonb)) AS w (
        id uuid, kind text, event_id uuid, fact_text text, targets jsonb, proposed_text text,
        reason text, content_hash text
    )
    ON CONFLICT (lane_id, content_hash) DO UPDATE SET
        state = 'OPEN', event_id = excluded.event_id, reason = excluded.reason, created_at = now()
    WHERE suggestions.state = 'INVALID'
), contested AS (
    -- A statement may join a conflict that is open already.
    INSERT INTO conflicts (id, project_id, lane_id, slot, event_id)
    SELECT r.id, h.project_id, h.lane_id, r.slot, r.event_id
    FROM advanced h, jsonb_to_recordset(CAST(:conflicts AS jsonb)) AS r (
        id uuid, slot text, event_id uuid
    )
    ON CONFLICT DO NOTHING
), members AS (
    INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)
    SELECT m.conflict_id, m.memory_id, m.against_id, h.lane_id, decode(m.text_hash, 'hex')
    FROM advanced h, jsonb_to_recordset(CAST(:conflict_members AS jsonb)) AS m (
        conflict_id uuid, memory_id uuid, against_id uuid, text_hash text
    )
    ON CONFLICT (conflict_id, memory_id, against_id) DO UPDATE SET text_hash = excluded.text_hash
), closed AS (
    UPDATE relations SET valid_to = e.valid_to, expired_at = now(), ended_by = e.event_id
    FROM advanced h, jsonb_to_recordset(CAST(:ended AS jsonb)) AS e (
        id uuid, event_id uuid, valid_to timestamptz, moved_id uuid, memory_id uuid,
        message_ordinal smallint
    )
    WHERE relations.id = e.id AND relations.lane_id = h.lane_id AND relations.expired_at IS NULL
    RETURNING relations.project_id, relations.lane_id, relations.source_id, relations.relation,
              relations.destination_id, relations.valid_from, e.event_id, e.moved_id, e.memory_id,
              e.message_ordinal
), moved AS (
    -- Reads the closed rows, so that the relation it takes the place of is closed first.
    INSERT INTO relations (
        id, project_id, lane_id, source_id, relation, destination_id, event_id, message_ordinal,
        memory_id, valid_from
    )
    SELECT c.moved_id, c.project_id, c.lane_id, c.source_id, c.relation, c.destination_id,
           c.event_id, c.message_ordinal, c.memory_id, c.valid_from
    FROM closed c WHERE c.moved_id IS NOT NULL
    ON CONFLICT DO NOTHING
), {save_output.sql}
SELECT true AS lane, EXISTS (SELECT FROM advanced) AS advanced FROM lane

-- Write the lines of an import, its receipt, output and the lane's next stage: one commit, or
-- nothing. A row whose id is stored already stays as it is, so an import can be repeated. Imported
-- events have ended: they get the next sequence numbers of the lane, and no worker reads them. The
-- lines leave the options of the import, because their rows have them from now on.
-- Entities are known by their key: a relation uses the stored entity, or the one that is inserted.
-- Lock order: pipeline/ledger/locks.py.
WITH lane AS MATERIALIZED (
    SELECT id, accepted_seq, forgotten_seq FROM lanes
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    FOR UPDATE
), past_event AS MATERIALIZED (
    SELECT e.*, row_number() OVER (ORDER BY e.place) AS number
    FROM jsonb_to_recordset(CAST(:events AS jsonb)) AS e (
        place integer, id uuid, event_type text, status text, options jsonb, tokens integer,
        failure_code text, failure_detail text, graph_status text, note text, mode text,
        mode_reason text, created_at timestamptz, started_at timestamptz, completed_at timestamptz,
        replays smallint, replayed_at timestamptz, undone_at timestamptz
    )
    WHERE NOT EXISTS (SELECT FROM events stored WHERE stored.id = e.id)
), advanced AS (
    UPDATE lanes SET
        accepted_seq = lane.accepted_seq + (SELECT count(*) FROM past_event),
        {next_stage.sql}
    FROM lane
    WHERE lanes.id = lane.id
    RETURNING lanes.id AS lane_id, lanes.project_id, lanes.user_id, lanes.agent_id, lanes.app_id,
              lanes.run_id, lanes.temporary, lanes.batch_id, lane.accepted_seq AS before_seq,
              lane.forgotten_seq
), event AS (
    INSERT INTO events (
        id, project_id, lane_id, seq, event_type, status, options, tokens, failure_code,
        failure_detail, graph_status, note, mode, mode_reason, created_at, started_at, completed_at,
        replays, replayed_at, undone_at, imported_at
    )
    SELECT e.id, h.project_id, h.lane_id, h.before_seq + e.number, e.event_type, e.status, e.options,
           e.tokens, e.failure_code, e.failure_detail, e.graph_status, e.note, e.mode, e.mode_reason,
           e.created_at, e.started_at, e.completed_at, e.replays, e.replayed_at, e.undone_at,
           now()
    FROM advanced h, past_event e
), emptied AS (
    UPDATE events SET options = events.options - 'records'
    FROM advanced
    WHERE events.batch_id = advanced.batch_id
), new_message AS (
    INSERT INTO messages (lane_id, seq, ordinal, role, name, content, omitted, terms, said_at)
    SELECT h.lane_id, h.before_seq + e.number, m.ordinal, m.role, m.name, m.content, m.omitted,
           m.terms, m.said_at
    FROM advanced h, jsonb_to_recordset(CAST(:messages AS jsonb)) AS m (
        event_id uuid, ordinal smallint, role text, name text, content text, omitted jsonb,
        terms text[], said_at timestamptz
    )
    JOIN past_event e ON e.id = m.event_id
), turn_vector AS (
    INSERT INTO turn_vectors (event_id, ordinal, lane_id)
    SELECT m.event_id, m.ordinal, h.lane_id
    FROM advanced h, jsonb_to_recordset(CAST(:messages AS jsonb)) AS m (
        event_id uuid, ordinal smallint, searched boolean
    )
    JOIN past_event e ON e.id = m.event_id
    WHERE m.searched
), receipt_line AS (
    INSERT INTO receipts (
        event_id, ordinal, outcome, memory_id, text, previous_text, reason, message_ordinal,
        conflict_id, adopted_at
    )
    SELECT r.event_id, r.ordinal, r.outcome, r.memory_id, r.text, r.previous_text, r.reason,
           r.message_ordinal, r.conflict_id, r.adopted_at
    FROM advanced h, jsonb_to_recordset(CAST(:receipts AS jsonb)) AS r (
        event_id uuid, ordinal smallint, outcome text, memory_id uuid, text text,
        previous_text text, reason text, message_ordinal smallint, conflict_id uuid,
        adopted_at timestamptz
    )
    WHERE r.event_id IN (SELECT id FROM past_event)
       OR r.event_id IN (SELECT id FROM events WHERE batch_id = h.batch_id)
    ON CONFLICT DO NOTHING
), graph_told AS (
    INSERT INTO graph_receipts (
        event_id, ordinal, outcome, relation_id, memory_id, source, relation, destination, reason,
        message_ordinal
    )
    SELECT r.event_id, r.ordinal, r.outcome, r.relation_id, r.memory_id, r.source, r.relation,
           r.destination, r.reason, r.message_ordinal
    FROM advanced h, jsonb_to_recordset(CAST(:graph_receipts AS jsonb)) AS r (
        event_id uuid, ordinal smallint, outcome text, relation_id uuid, memory_id uuid,
        source text, relation text, destination text, reason text, message_ordinal smallint
    )
    JOIN past_event e ON e.id = r.event_id
    ON CONFLICT DO NOTHING
), born AS (
    INSERT INTO memories (
        id, project_id, lane_id, user_id, agent_id, app_id, run_id, text_hash, {state_columns.sql},
        replaced_by, pinned, edited_at, forgotten_at, updated_at, stored_at, embedding, embedder
    )
    SELECT m.id, h.project_id, h.lane_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           decode(m.text_hash, 'hex'), {state_columns.sql}, m.replaced_by, m.pinned, m.edited_at,
           m.forgotten_at, m.updated_at, m.stored_at, decode(m.embedding, 'base64'),
           CAST(:embedder AS text)
    FROM advanced h, jsonb_to_recordset(CAST(:memories AS jsonb)) AS m (
        id uuid, text_hash text, replaced_by uuid, pinned boolean, edited_at timestamptz,
        forgotten_at timestamptz, updated_at timestamptz, stored_at timestamptz, {state_types.sql}
    )
), passed AS (
    INSERT INTO past_states (
        id, memory_id, project_id, lane_id, user_id, agent_id, app_id, run_id, {state_columns.sql},
        replaced_by, pinned, edited_at, updated_at, stored_at, replaced_at, embedding, embedder
    )
    SELECT m.id, m.memory_id, h.project_id, h.lane_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           {state_columns.sql}, m.replaced_by, m.pinned, m.edited_at, m.updated_at, m.stored_at,
           m.replaced_at, decode(m.embedding, 'base64'), CAST(:embedder AS text)
    FROM advanced h, jsonb_to_recordset(CAST(:past_states AS jsonb)) AS m (
        id uuid, memory_id uuid, replaced_by uuid, pinned boolean, edited_at timestamptz,
        updated_at timestamptz, stored_at timestamptz, replaced_at timestamptz, {state_types.sql}
    )
), remembered AS (
    INSERT INTO memory_history (
        memory_id, version, project_id, event, old_text, new_text, metadata, expiration_date,
        reason, event_id, message_ordinal, undoes, key_id, said_at, valid_from, structure,
        created_at, imported_at, temporary
    )
    SELECT p.memory_id, p.version, h.project_id, p.event, p.old_text, p.new_text, p.metadata,
           p.expiration_date, p.reason, p.event_id, p.message_ordinal, p.undoes, p.key_id,
           p.said_at, p.valid_from, p.structure, p.created_at, now(), h.temporary
    FROM advanced h, jsonb_to_recordset(CAST(:history AS jsonb)) AS p (
        memory_id uuid, version integer, event text, old_text text, new_text text, metadata jsonb,
        expiration_date date, reason text, event_id uuid, message_ordinal smallint, undoes uuid,
        key_id uuid, said_at timestamptz, valid_from timestamptz, structure jsonb,
        created_at timestamptz
    )
), rated AS (
    INSERT INTO feedback (memory_id, project_id, feedback, reason, created_at)
    SELECT f.memory_id, h.project_id, f.feedback, f.reason, f.created_at
    FROM advanced h, jsonb_to_recordset(CAST(:feedback AS jsonb)) AS f (
        memory_id uuid, feedback text, reason text, created_at timestamptz
    )
), node AS (
    INSERT INTO entities (
        id, project_id, lane_id, name, name_key, kind, plain_name, qualifier, mentions,
        mentioned_at, merged_into, root_id, merge_reason, merged_at, past_merges, created_at
    )
    SELECT n.id, h.project_id, h.lane_id, n.name, n.name_key, n.kind, n.plain_name, n.qualifier,
           n.mentions, n.mentioned_at, coalesce(into_node.id, n.merged_into),
           coalesce(root.id, n.root_id), n.merge_reason, n.merged_at, n.past_merges,
           n.created_at
    FROM advanced h CROSS JOIN jsonb_to_recordset(CAST(:entities AS jsonb)) AS n (
        id uuid, name text, name_key text, kind text, plain_name text, qualifier text,
        mentions integer, mentioned_at timestamptz, merged_into uuid, merged_key text, root_id uuid,
        root_key text, merge_reason text, merged_at timestamptz, past_merges jsonb,
        created_at timestamptz
    )
    LEFT JOIN entities into_node ON into_node.lane_id = h.lane_id AND into_node.name_key = n.merged_key
    LEFT JOIN entities root ON root.lane_id = h.lane_id AND root.name_key = n.root_key
    ORDER BY n.id
    ON CONFLICT DO NOTHING
    RETURNING id, name_key
), edge AS (
    INSERT INTO relations (
        id, project_id, lane_id, source_id, relation, destination_id, event_id, message_ordinal,
        memory_id, ended_by, valid_from, valid_to, created_at, expired_at, past_ends
    )
    SELECT r.id, h.project_id, h.lane_id, s.id, r.relation, d.id, r.event_id, r.message_ordinal,
           r.memory_id, r.ended_by, r.valid_from, r.valid_to, r.created_at, r.expired_at,
           r.past_ends
    FROM advanced h CROSS JOIN jsonb_to_recordset(CAST(:relations AS jsonb)) AS r (
        id uuid, source text, relation text, destination text, event_id uuid,
        message_ordinal smallint, memory_id uuid, ended_by uuid, valid_from timestamptz,
        valid_to timestamptz, created_at timestamptz, expired_at timestamptz, past_ends jsonb
    )
    CROSS JOIN LATERAL (
        SELECT e.id FROM entities e WHERE e.lane_id = h.lane_id AND e.name_key = r.source
        UNION ALL SELECT node.id FROM node WHERE node.name_key = r.source
        LIMIT 1
    ) s
    CROSS JOIN LATERAL (
        SELECT e.id FROM entities e WHERE e.lane_id = h.lane_id AND e.name_key = r.destination
        UNION ALL SELECT node.id FROM node WHERE node.name_key = r.destination
        LIMIT 1
    ) d
    ON CONFLICT DO NOTHING
), summary AS (
    -- A scope that has summaries of its own keeps them.
    INSERT INTO summaries (
        lane_id, version, project_id, text, after_seq, until_seq, messages, model, prompt, created_at
    )
    SELECT h.lane_id, s.version, h.project_id, s.text, h.forgotten_seq,
           coalesce(h.before_seq + e.number, stored.seq), s.messages, s.model, s.prompt,
           s.created_at
    FROM advanced h CROSS JOIN jsonb_to_recordset(CAST(:summaries AS jsonb)) AS s (
        version integer, text text, until_event uuid, messages integer, model text, prompt text,
        created_at timestamptz
    )
    LEFT JOIN past_event e ON e.id = s.until_event
    LEFT JOIN events stored ON stored.id = s.until_event AND stored.lane_id = h.lane_id
    WHERE e.id IS NOT NULL OR stored.id IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING lane_id, version, project_id
), summary_state AS (
    INSERT INTO summary_states (lane_id, project_id, version)
    SELECT lane_id, project_id, max(version) FROM summary GROUP BY lane_id, project_id
    ON CONFLICT (lane_id) DO UPDATE SET
        version = greatest(summary_states.version, excluded.version)
), contested AS (
    INSERT INTO conflicts (
        id, project_id, lane_id, slot, event_id, resolved_by, resolution, created_at, resolved_at
    )
    SELECT c.id, h.project_id, h.lane_id, c.slot, c.event_id, c.resolved_by, c.resolution,
           c.created_at, c.resolved_at
    FROM advanced h, jsonb_to_recordset(CAST(:conflicts AS jsonb)) AS c (
        id uuid, slot text, event_id uuid, resolved_by uuid, resolution text,
        created_at timestamptz, resolved_at timestamptz
    )
), members AS (
    INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)
    SELECT m.conflict_id, m.memory_id, m.against_id, h.lane_id, decode(m.text_hash, 'hex')
    FROM advanced h, jsonb_to_recordset(CAST(:conflict_members AS jsonb)) AS m (
        conflict_id uuid, memory_id uuid, against_id uuid, text_hash text
    )
), {save_output.sql}
SELECT true AS lane, EXISTS (SELECT FROM advanced) AS advanced FROM lane

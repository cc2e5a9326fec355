-- Write a batch's changes of the graph, its output and the lane's next stage: one commit, or
-- nothing. A relation that ends is closed: `valid_to` is the time since when it does not hold, and
-- `ended_by` the event that says so. A relation without `valid_to` is replaced by one that began
-- earlier. Storing an existing relation changes nothing. Changes by a fact whose memory a person has
-- deleted are not stored. The memories are locked, so a deletion right after this sees the relations
-- that it must end.
WITH advanced AS (
    UPDATE lanes SET
        {next_stage.sql}
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id AS lane_id, project_id, batch_id
), standing AS MATERIALIZED (
    SELECT m.id FROM advanced JOIN memories m ON m.lane_id = advanced.lane_id
    WHERE m.id = ANY (CAST(:memory_ids AS uuid[])) AND (m.state = 'ACTIVE' OR EXISTS (
        SELECT FROM memory_history s
        WHERE s.memory_id = m.id AND s.version = m.version
          AND s.event_id = ANY (CAST(:event_ids AS uuid[]))))
    ORDER BY m.id
    FOR SHARE OF m
), placed AS (
    SELECT * FROM jsonb_to_recordset(CAST(:relations AS jsonb)) AS p (
        id uuid, source_id uuid, relation text, destination_id uuid, event_id uuid,
        message_ordinal smallint, memory_id uuid, valid_from timestamptz, valid_to timestamptz,
        ended_by uuid
    )
    WHERE p.memory_id IS NULL OR p.memory_id IN (SELECT id FROM standing)
), merge AS (
    SELECT * FROM jsonb_to_recordset(CAST(:merges AS jsonb)) AS m (
        id uuid, merged_into uuid, reason text
    )
), node AS (
    INSERT INTO entities AS e (
        id, project_id, lane_id, name, name_key, kind, plain_name, qualifier, mentioned_at,
        merged_into, root_id, merge_reason, merged_at
    )
    SELECT n.id, h.project_id, h.lane_id, n.name, n.name_key, n.kind, n.plain_name, n.qualifier,
           now(), m.merged_into, m.merged_into, m.reason,
           CASE WHEN m.merged_into IS NOT NULL THEN now() END
    FROM advanced h, jsonb_to_recordset(CAST(:entities AS jsonb)) AS n (
        id uuid, name text, name_key text, kind text, plain_name text, qualifier text
    ) LEFT JOIN merge m USING (id)
    WHERE n.id IN (SELECT source_id FROM placed UNION SELECT destination_id FROM placed)
       OR EXISTS (SELECT FROM entities known WHERE known.id = n.id)
       OR (m.id IS NOT NULL AND EXISTS (SELECT FROM standing))
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET
        mentions = e.mentions + 1, mentioned_at = now(),
        plain_name = coalesce(e.plain_name, excluded.plain_name),
        qualifier = coalesce(e.qualifier, excluded.qualifier),
        merged_into = coalesce(e.merged_into, excluded.merged_into),
        root_id = coalesce(e.root_id, excluded.root_id),
        merge_reason = coalesce(e.merge_reason, excluded.merge_reason),
        merged_at = coalesce(e.merged_at, excluded.merged_at)
    RETURNING e.id
), moved AS (
    -- The members of a node that is merged move with it. A node that the batch inserts has none.
    UPDATE entities SET root_id = m.merged_into
    FROM advanced h, merge m
    WHERE entities.lane_id = h.lane_id AND entities.root_id = m.id
      AND m.id IN (SELECT id FROM node) AND entities.id NOT IN (SELECT id FROM node)
), closed AS (
    -- An end that was known already moves only to an earlier time.
    UPDATE relations SET valid_to = e.valid_to, expired_at = coalesce(expired_at, now()),
           ended_by = e.ended_by
    FROM advanced, jsonb_to_recordset(CAST(:ended AS jsonb)) AS e (
        id uuid, valid_to timestamptz, ended_by uuid, memory_id uuid
    )
    WHERE relations.id = e.id AND relations.lane_id = advanced.lane_id
      AND (relations.expired_at IS NULL OR relations.valid_to > e.valid_to)
      AND (e.memory_id IS NULL OR e.memory_id IN (SELECT id FROM standing))
    RETURNING relations.id
), edge AS (
    -- After `closed`: a relation that began earlier takes the place of the same current relation.
    INSERT INTO relations (
        id, project_id, lane_id, source_id, relation, destination_id, event_id, message_ordinal,
        memory_id, valid_from, valid_to, expired_at, ended_by
    )
    SELECT p.id, h.project_id, h.lane_id, p.source_id, p.relation, p.destination_id, p.event_id,
           p.message_ordinal, p.memory_id, p.valid_from, p.valid_to,
           CASE WHEN p.valid_to IS NOT NULL THEN now() END, p.ended_by
    FROM advanced h, placed p
    WHERE (SELECT count(*) FROM closed) + (SELECT count(*) FROM node) >= 0
    ON CONFLICT DO NOTHING
), line AS (
    INSERT INTO graph_receipts (
        event_id, ordinal, outcome, relation_id, memory_id, source, relation, destination, reason,
        message_ordinal
    )
    SELECT l.event_id,
           (SELECT coalesce(max(o.ordinal), -1) FROM graph_receipts o
             WHERE o.event_id = l.event_id)
               + row_number() OVER (PARTITION BY l.event_id ORDER BY l.place),
           l.outcome, l.relation_id, l.memory_id, l.source, l.relation, l.destination, l.reason,
           l.message_ordinal
    FROM advanced h, jsonb_to_recordset(CAST(:lines AS jsonb)) AS l (
        place integer, event_id uuid, outcome text, relation_id uuid, memory_id uuid, source text,
        relation text, destination text, reason text, message_ordinal smallint
    )
    WHERE l.memory_id IS NULL OR l.memory_id IN (SELECT id FROM standing)
), {save_output.sql}
SELECT true AS lane, true AS advanced FROM advanced

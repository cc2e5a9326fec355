-- Store the suggestions of a step, and mark the step as done: one commit, or nothing. The same
-- change of the same texts is suggested once; one that became outdated undecided is renewed.
WITH run AS MATERIALIZED (
    SELECT id, project_id, lane_id FROM curator_runs WHERE {claimed.sql} FOR UPDATE
), step AS (
    UPDATE curator_steps SET acted_at = now()
    FROM run WHERE curator_steps.run_id = run.id AND acted_at IS NULL
), locked AS MATERIALIZED (
    -- By id and before the suggestions: the trigger of each locks the memories that it names.
    SELECT m.id FROM memories m
    WHERE m.id = ANY (ARRAY(
        SELECT CAST(target ->> 'memory_id' AS uuid)
        FROM jsonb_path_query(CAST(:suggestions AS jsonb), '$[*].targets[*]') AS target))
      AND m.lane_id = (SELECT lane_id FROM run)
    ORDER BY m.id
    FOR SHARE
), stored AS (
    INSERT INTO suggestions (
        id, project_id, lane_id, kind, origin, targets, proposed_text, reason, content_hash,
        run_id
    )
    SELECT made.id, run.project_id, run.lane_id, made.kind, 'curator', made.targets,
           made.proposed_text, made.reason, decode(made.content_hash, 'hex'), run.id
    FROM run, jsonb_to_recordset(CAST(:suggestions AS jsonb)) AS made (
        id uuid, kind text, targets jsonb, proposed_text text, reason text, content_hash text
    )
    WHERE (SELECT count(*) FROM locked) >= 0
    ON CONFLICT (lane_id, content_hash) DO UPDATE SET
        state = 'OPEN', targets = excluded.targets, proposed_text = excluded.proposed_text,
        reason = excluded.reason, run_id = excluded.run_id, created_at = now()
    WHERE suggestions.state IN ('OPEN', 'INVALID')
    RETURNING suggestions.id
)
UPDATE curator_runs SET
    due_at = now() + CAST(:lease AS interval), attempts = 1, waits = 0,
    suggested = suggested + (SELECT count(*) FROM stored),
    dropped = dropped + CAST(:dropped AS integer)
FROM run WHERE curator_runs.id = run.id
RETURNING suggested

cost AS (
    DELETE FROM event_costs WHERE event_id = ANY (ARRAY(SELECT id FROM old))
), run AS (
    DELETE FROM stage_runs WHERE batch_id = ANY (ARRAY(SELECT batch_id FROM old))
), failed_run AS (
    DELETE FROM failed_runs WHERE batch_id = ANY (ARRAY(SELECT batch_id FROM old))
), counted AS (
    -- The books keep the numbers of the events: the trigger of the table subtracts them, see GONE in
    -- pipeline/ledger/tables/balance.py.
    INSERT INTO book_entries (project_id, kind, amount)
    SELECT old.project_id, prefix || line.kind, sum(line.amount)
    FROM old
    CROSS JOIN LATERAL (
        VALUES (old.status, 1), (old.event_type, 1), ('REPLAY', old.replays)
    ) AS line (kind, amount)
    CROSS JOIN (VALUES (''), ('GONE ')) AS twice (prefix)
    GROUP BY old.project_id, prefix || line.kind
    HAVING sum(line.amount) > 0
)
DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM old))

-- Retire memories of a scope that a replay replaces. The caller has locked them. Their history gets
-- a DELETE line with the reason and stays readable.
WITH gone AS (
    UPDATE memories SET
        state = 'RETIRED', version = version + 1, updated_at = now(),
        replaced_by = CAST(:shadow_id AS uuid)
    WHERE id = ANY (CAST(:gone AS uuid[]))
    RETURNING id, version, project_id, text, metadata, expiration_date, said_at, valid_from,
              temporary
), history AS (
    INSERT INTO memory_history (
        memory_id, version, project_id, event, old_text, metadata, expiration_date, reason, said_at,
        valid_from, temporary
    )
    SELECT id, version, project_id, 'DELETE', text, metadata, expiration_date,
           CAST(:reason AS text), said_at, valid_from, temporary
    FROM gone
)
UPDATE memories SET replaced_by = CAST(:shadow_id AS uuid)
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'RETIRED' AND replaced_by IS NULL

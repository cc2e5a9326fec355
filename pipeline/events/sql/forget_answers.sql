-- Delete answers of dry runs after their lifetime.
WITH old AS MATERIALIZED (
    SELECT lane_id, digest FROM kept_answers
    WHERE expires_at < now()
    ORDER BY expires_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM kept_answers USING old
WHERE kept_answers.lane_id = old.lane_id AND kept_answers.digest = old.digest

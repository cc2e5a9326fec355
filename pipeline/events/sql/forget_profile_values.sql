-- Delete values of profiles that were replaced before their retention time.
WITH old AS MATERIALIZED (
    SELECT id FROM profile_fields
    WHERE replaced_at < now() - CAST(:age AS interval)
    ORDER BY replaced_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM profile_fields USING old WHERE profile_fields.id = old.id

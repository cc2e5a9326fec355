-- Condition on relations `r`: the expiration date of the memory that states it, if any, is not over on
-- the day of `at`, or today. The date is that of the memory's state at `as_of`, or now; of a relation
-- that has ended by then, that of the state which stated it. Look-ups for each relation, which no
-- plan turns into a join of tables.
coalesce((
    SELECT s.expiration_date IS NULL OR s.expiration_date
           >= (coalesce(CAST(:at AS timestamptz), now()) AT TIME ZONE 'UTC')::date
    FROM (
        SELECT CASE WHEN known.expired_at IS NULL OR known.expired_at > CAST(:as_of AS timestamptz)
                    THEN coalesce(CAST(:as_of AS timestamptz), 'infinity')
                    ELSE r.created_at END AS at
        FROM ({known_end.sql}) known
    ) moment, LATERAL (
        (SELECT p.expiration_date, p.replaced_at FROM past_states p
         WHERE p.memory_id = r.memory_id AND p.replaced_at > moment.at AND p.stored_at <= moment.at
         ORDER BY p.replaced_at
         LIMIT 1)
        UNION ALL
        SELECT m.expiration_date, 'infinity' FROM memories m
        WHERE m.id = r.memory_id AND m.lane_id = r.lane_id
    ) s
    ORDER BY s.replaced_at
    LIMIT 1
), true)

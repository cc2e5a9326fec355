-- Condition on relations `r`: the expiration date of the memory that states it, if any, is not over on
-- the day of `at`, or today. A lookup for each relation, which no plan turns into a join of tables.
coalesce((
    SELECT m.expiration_date >= (coalesce(CAST(:at AS timestamptz), now()) AT TIME ZONE 'UTC')::date
    FROM memories m
    WHERE m.id = r.memory_id AND m.lane_id = r.lane_id
), true)

-- Condition on relations `r`. Without a time: current ones. `as_of`: those that were current in
-- Memlane at that time. `valid_at`: those that held in the world at that time, as far as it is known
-- now or was known at `as_of`.
CASE WHEN CAST(:as_of AS timestamptz) IS NULL AND CAST(:valid_at AS timestamptz) IS NULL
     THEN r.expired_at IS NULL
     ELSE r.created_at <= coalesce(CAST(:as_of AS timestamptz), now())
          AND (CAST(:valid_at AS timestamptz) IS NULL
               OR r.valid_from <= CAST(:valid_at AS timestamptz))
          AND (SELECT known.expired_at IS NULL OR known.expired_at > CAST(:as_of AS timestamptz)
                      OR known.valid_to > CAST(:valid_at AS timestamptz)
               FROM ({known_end.sql}) known)
END

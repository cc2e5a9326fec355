-- Queue a run again after a delay, because a model does not answer, or because its worker stops.
UPDATE curator_runs SET
    state = 'QUEUED', hinted = false, due_at = now() + CAST(:delay AS interval), attempts = attempts - 1,
    waits = waits + CAST(:waits AS integer)
WHERE {claimed.sql}
RETURNING waits

-- Erase an owner in one statement: delete every row with a text or an id of it, reduce its events to
-- numbers, clear its lanes, end its private runs, and queue the deletion of its vectors. All rows
-- are found by an index, from the lanes and memories that the caller has locked. Each part sees the
-- state at the beginning of the statement, and the list at the end executes them in its order:
-- referring rows first, and the curator's runs before the suggestions, as the curator locks them.
--
-- Only numbers are left of erased events. They move to the end of the project's own lane, so that
-- the books still balance and nothing links them to the owner. Running events end: SUCCEEDED if
-- their memories were stored, else CANCELLED. The lanes lose their ids, start again at 0 and raise
-- their fence above any that a worker still has. The erasure's own event is added last.
WITH theirs AS MATERIALIZED (
    SELECT e.id, row_number() OVER (ORDER BY e.created_at, e.id) AS place,
           {is_applied.sql} AS applied
    FROM events e
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.lane_id = ANY (CAST(:lane_ids AS uuid[]))
), gone_receipts AS (
    DELETE FROM receipts WHERE event_id = ANY (ARRAY(SELECT id FROM theirs)) RETURNING 1
), lines_about AS (
    -- Lines about its memories in the receipts of other events.
    DELETE FROM receipts
    WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) AND event_id = ANY (ARRAY(
        SELECT h.event_id FROM memory_history h
        WHERE h.memory_id = ANY (CAST(:memory_ids AS uuid[])) AND h.event_id IS NOT NULL
          AND h.event_id <> ALL (ARRAY(SELECT id FROM theirs))))
    RETURNING 1
), gone_graph_receipts AS (
    DELETE FROM graph_receipts WHERE event_id = ANY (ARRAY(SELECT id FROM theirs)) RETURNING 1
), gone_relations AS (
    DELETE FROM relations WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_entities AS (
    DELETE FROM entities WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_conflicts AS (
    DELETE FROM conflicts WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_curator_runs AS (
    DELETE FROM curator_runs WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_suggestions AS (
    DELETE FROM suggestions WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_summaries AS (
    DELETE FROM summaries WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_summary_states AS (
    DELETE FROM summary_states WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_profiles AS (
    DELETE FROM profiles
    WHERE project_id = CAST(:project_id AS uuid) AND user_id = CAST(:owner_id AS text)
      AND CAST(:kind AS text) = 'user'
    RETURNING 1
), gone_profile_fields AS (
    -- Those of the user, and values of any user that one of the memories states.
    DELETE FROM profile_fields WHERE id = ANY (ARRAY(
        SELECT id FROM profile_fields
        WHERE project_id = CAST(:project_id AS uuid) AND user_id = CAST(:owner_id AS text)
          AND CAST(:kind AS text) = 'user'
        UNION ALL
        SELECT id FROM profile_fields WHERE memory_ids && CAST(:memory_ids AS uuid[])))
    RETURNING 1
), gone_kept_answers AS (
    DELETE FROM kept_answers WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_past_states AS (
    DELETE FROM past_states WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_history AS (
    DELETE FROM memory_history WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_feedback AS (
    DELETE FROM feedback WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_memory_accesses AS (
    DELETE FROM memory_accesses WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_rebuilt_vectors AS (
    DELETE FROM rebuilt WHERE memory_id = ANY (CAST(:vector_ids AS uuid[])) RETURNING 1
), gone_turn_vectors AS (
    DELETE FROM turn_vectors WHERE event_id = ANY (ARRAY(SELECT id FROM theirs)) RETURNING 1
), gone_memories AS (
    DELETE FROM memories WHERE id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_messages AS (
    DELETE FROM messages WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_webhook_deliveries AS (
    DELETE FROM webhook_deliveries WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) RETURNING 1
), gone_idempotency_keys AS (
    DELETE FROM idempotency_keys WHERE event_id = ANY (ARRAY(SELECT id FROM theirs)) RETURNING 1
), gone_usage AS (
    DELETE FROM usage_daily
    WHERE project_id = CAST(:project_id AS uuid) AND user_id = CAST(:owner_id AS text)
      AND CAST(:kind AS text) = 'user'
    RETURNING 1
), gone_user_tokens AS (
    DELETE FROM user_tokens
    WHERE project_id = CAST(:project_id AS uuid) AND user_id = CAST(:owner_id AS text)
      AND CAST(:kind AS text) = 'user'
    RETURNING 1
), gone_memory_reads AS (
    DELETE FROM memory_reads WHERE memory_id = ANY (CAST(:memory_ids AS uuid[])) RETURNING 1
), gone_saved_views AS (
    -- Of the console, at most 50 a project: those whose name or filters have the id.
    DELETE FROM saved_views
    WHERE project_id = CAST(:project_id AS uuid) AND (
        position(CAST(:owner_id AS text) IN name) > 0 OR EXISTS (
            SELECT FROM jsonb_each_text(query) AS part
            WHERE position(CAST(:owner_id AS text) IN part.value) > 0))
    RETURNING 1
), owned AS MATERIALIZED (
    SELECT agent_id, app_id, run_id FROM lanes WHERE id = ANY (CAST(:lane_ids AS uuid[]))
), named AS MATERIALIZED (
    -- The owner, and its agents, apps and runs whose lanes are all erased. `narrower`: the kinds
    -- that belong to this kind of owner. OFFSET 0 keeps each EXISTS a look-up that ends at the
    -- first lane: a join would read all lanes of the kind.
    SELECT CAST(:kind AS text) AS kind, CAST(:owner_id AS text) AS id
    UNION
    SELECT 'agent', agent_id FROM owned
    WHERE 'agent' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = CAST(:project_id AS uuid) AND l.agent_id = owned.agent_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])) OFFSET 0)
    UNION
    SELECT 'app', app_id FROM owned
    WHERE 'app' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = CAST(:project_id AS uuid) AND l.app_id = owned.app_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])) OFFSET 0)
    UNION
    SELECT 'run', run_id FROM owned
    WHERE 'run' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = CAST(:project_id AS uuid) AND l.run_id = owned.run_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])) OFFSET 0)
), gone_owners AS (
    -- Their registered names and metadata.
    DELETE FROM owners USING named
    WHERE owners.project_id = CAST(:project_id AS uuid) AND owners.kind = named.kind
      AND owners.id = named.id
    RETURNING 1
), gone_own_collections AS (
    -- Vectors of large scopes; the sweeper deletes a collection that is not in the list.
    DELETE FROM own_collections c USING named
    WHERE c.project_id = CAST(:project_id AS uuid) AND named.id = CASE named.kind
        WHEN 'user' THEN c.user_id WHEN 'agent' THEN c.agent_id WHEN 'app' THEN c.app_id
        ELSE c.run_id END
    RETURNING 1
), ended_runs AS (
    -- The run itself, and those whose lanes are all erased. Adds to them are refused from now on.
    UPDATE private_runs SET privacy = 'ended', run_id = NULL, expires_at = NULL, ended_at = now()
    WHERE project_id = CAST(:project_id AS uuid) AND privacy <> 'ended'
      AND digest = ANY (ARRAY(
          SELECT private_run_digest(CAST(:project_id AS uuid), run.id)
          FROM unnest(CAST(:run_ids AS text[])) AS run (id)
          WHERE run.id = CAST(:this AS text) OR NOT EXISTS (
              SELECT FROM lanes l
              WHERE l.project_id = CAST(:project_id AS uuid) AND l.run_id = run.id
                AND l.id <> ALL (CAST(:lane_ids AS uuid[])) OFFSET 0)))
    RETURNING 1
), numbers AS MATERIALIZED (
    SELECT own.accepted_seq AS before, (
        SELECT coalesce(sum(accepted_seq), 0) FROM lanes WHERE id = ANY (CAST(:lane_ids AS uuid[]))
    ) AS moved
    FROM lanes own WHERE own.id = CAST(:own_lane_id AS uuid)
), emptied_events AS (
    UPDATE events SET
        lane_id = CAST(:own_lane_id AS uuid), seq = numbers.before + theirs.place,
        status = CASE WHEN status NOT IN ('PENDING', 'RUNNING') THEN status
                      WHEN applied THEN 'SUCCEEDED' ELSE 'CANCELLED' END,
        failure_code = CASE WHEN status IN ('PENDING', 'RUNNING') AND NOT applied
                            THEN 'CANCELLED' ELSE failure_code END,
        options = '{}', failure_detail = NULL, note = CAST(:note AS text),
        completed_at = coalesce(completed_at, now()), erased_at = now()
    FROM theirs, numbers
    WHERE events.id = theirs.id
    RETURNING 1
), emptied_outputs AS (
    UPDATE stage_runs SET output = NULL, lane_id = CAST(:own_lane_id AS uuid)
    WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
    RETURNING 1
), emptied_lanes AS (
    UPDATE lanes SET
        user_id = NULL, agent_id = NULL, app_id = NULL, run_id = NULL, temporary = false,
        accepted_seq = 0, settled_seq = 0, forgotten_seq = 0, normal_seq = NULL, state = 'IDLE', stage = 'extract', batch_id = NULL,
        fence = fence + 1, epoch = epoch + 1, owner = NULL, due_at = NULL, attempts = 0,
        waits = 0, wait_code = NULL, wait_cause = NULL, width = NULL
    WHERE id = ANY (CAST(:lane_ids AS uuid[]))
), gone_cleared_lanes AS (
    DELETE FROM cleared_lanes WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
), own_lane AS (
    UPDATE lanes SET
        accepted_seq = before + moved + 1,
        settled_seq = CASE state WHEN 'IDLE' THEN before + moved + 1 ELSE settled_seq END
    FROM numbers WHERE lanes.id = CAST(:own_lane_id AS uuid)
    RETURNING lanes.accepted_seq
), own_event AS (
    INSERT INTO events (
        id, project_id, lane_id, seq, event_type, status, options, tokens, started_at
    )
    SELECT CAST(:event_id AS uuid), CAST(:project_id AS uuid), CAST(:own_lane_id AS uuid),
           accepted_seq, 'DELETE_USER', 'RUNNING', '{}', 0, now()
    FROM own_lane
), counted AS MATERIALIZED (
    SELECT jsonb_build_object(
        'receipts', (SELECT count(*) FROM gone_receipts) + (SELECT count(*) FROM lines_about),
        'graph_receipts', (SELECT count(*) FROM gone_graph_receipts),
        'relations', (SELECT count(*) FROM gone_relations),
        'entities', (SELECT count(*) FROM gone_entities),
        'conflicts', (SELECT count(*) FROM gone_conflicts),
        'curator_runs', (SELECT count(*) FROM gone_curator_runs),
        'suggestions', (SELECT count(*) FROM gone_suggestions),
        'summaries', (SELECT count(*) FROM gone_summaries),
        'summary_states', (SELECT count(*) FROM gone_summary_states),
        'profiles', (SELECT count(*) FROM gone_profiles),
        'profile_fields', (SELECT count(*) FROM gone_profile_fields),
        'kept_answers', (SELECT count(*) FROM gone_kept_answers),
        'past_states', (SELECT count(*) FROM gone_past_states),
        'history', (SELECT count(*) FROM gone_history),
        'feedback', (SELECT count(*) FROM gone_feedback),
        'memory_accesses', (SELECT count(*) FROM gone_memory_accesses),
        'rebuilt_vectors', (SELECT count(*) FROM gone_rebuilt_vectors),
        'turn_vectors', (SELECT count(*) FROM gone_turn_vectors),
        'memories', (SELECT count(*) FROM gone_memories),
        'messages', (SELECT count(*) FROM gone_messages),
        'webhook_deliveries', (SELECT count(*) FROM gone_webhook_deliveries),
        'idempotency_keys', (SELECT count(*) FROM gone_idempotency_keys),
        'usage', (SELECT count(*) FROM gone_usage),
        'user_tokens', (SELECT count(*) FROM gone_user_tokens),
        'memory_reads', (SELECT count(*) FROM gone_memory_reads),
        'saved_views', (SELECT count(*) FROM gone_saved_views),
        'entity_rows', (SELECT count(*) FROM gone_owners),
        'private_runs', (SELECT count(*) FROM ended_runs),
        'events', (SELECT count(*) FROM emptied_events),
        'stage_outputs', (SELECT count(*) FROM emptied_outputs)
    ) AS counts
)
INSERT INTO erasures (
    event_id, project_id, kind, counts, memory_ids, owner_hashes, of_session, due_at
)
SELECT CAST(:event_id AS uuid), CAST(:project_id AS uuid), CAST(:kind AS text), counts,
       CAST(:vector_ids AS uuid[]), CAST(:owner_hashes AS bigint[]),
       CAST(:of_session AS boolean), now()
FROM counted

CREATE OR REPLACE FUNCTION shown_state(state text, outdated boolean) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
SELECT CASE WHEN state = 'OPEN' AND outdated THEN 'INVALID' ELSE state END
$$
;
CREATE OR REPLACE FUNCTION is_outdated(s suggestions) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF s.state <> 'OPEN' THEN
        RETURN s.outdated;
    END IF;
    -- A memory that it would change has another version; or a person has deleted one that an add
    -- stored in place of the change, or all messages of the scope up to that of the suggestion.
    -- Memories are looked up one by one: a join of a small ledger may begin with all of them.
    RETURN EXISTS (
        SELECT FROM jsonb_array_elements(s.targets) AS target
        WHERE (
            SELECT m.state = 'ACTIVE' AND m.project_id = s.project_id
                   AND m.version = CAST(target ->> 'version' AS integer)
            FROM memories m WHERE m.id = CAST(target ->> 'memory_id' AS uuid)
        ) IS NOT TRUE
    ) OR EXISTS (
        SELECT FROM receipts r
        WHERE r.event_id = s.event_id AND r.suggestion_id = s.id AND (
            SELECT m.state = 'RETIRED' AND m.forgotten_at IS NOT NULL
                   AND m.project_id = s.project_id
            FROM memories m WHERE m.id = r.memory_id)
    ) OR EXISTS (
        SELECT FROM lanes l
        WHERE l.id = s.lane_id AND l.forgotten_seq >= coalesce(
            (SELECT e.seq FROM events e WHERE e.id = s.event_id),
            (SELECT r.accepted_seq FROM curator_runs r WHERE r.id = s.run_id))
    );
END $$
;
CREATE OR REPLACE FUNCTION open_until(c conflicts) RETURNS date
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE until date;
BEGIN
    IF c.resolved_by IS NOT NULL AND NOT EXISTS (
        SELECT FROM events e
        WHERE e.id = c.resolved_by AND e.project_id = c.project_id AND e.undone_at IS NOT NULL
    ) THEN
        RETURN NULL;
    END IF;
    -- The last days of each pair; NULL for a memory that is no longer that of the conflict. Memories
    -- are looked up one by one, as in is_outdated.
    SELECT max(least(mine, other)) INTO until
    FROM (
        SELECT (
            SELECT CASE WHEN m.state = 'ACTIVE' AND m.lane_id = a.lane_id
                             AND m.text_hash = a.text_hash
                        THEN coalesce(m.expiration_date, 'infinity') END
            FROM memories m WHERE m.id = a.memory_id
        ) AS mine, (
            SELECT CASE WHEN m.state = 'ACTIVE' AND m.lane_id = b.lane_id
                             AND m.text_hash = b.text_hash
                        THEN coalesce(m.expiration_date, 'infinity') END
            FROM memories m WHERE m.id = a.against_id
        ) AS other
        FROM conflict_members a
        JOIN conflict_members b ON b.conflict_id = a.conflict_id
            AND b.memory_id = a.against_id AND b.against_id = a.memory_id
        WHERE a.conflict_id = c.id AND a.memory_id < a.against_id
        OFFSET 0
    ) pair
    WHERE mine IS NOT NULL AND other IS NOT NULL;
    RETURN CASE WHEN until >= (now() AT TIME ZONE 'UTC')::date THEN until END;
END $$
;
CREATE OR REPLACE FUNCTION mark_suggestions(ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- The statement after the lock sees the commits that the lock has waited for.
    PERFORM FROM suggestions WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
    IF FOUND THEN
        UPDATE suggestions s SET outdated = NOT s.outdated
        WHERE s.id = ANY (ids) AND s.outdated <> is_outdated(s);
    END IF;
END $$
;
CREATE OR REPLACE FUNCTION mark_conflicts(ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM conflicts WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
    IF FOUND THEN
        UPDATE conflicts SET open_until = marked.until
        FROM (SELECT id, open_until(c) AS until FROM conflicts c WHERE id = ANY (ids) OFFSET 0) marked
        WHERE conflicts.id = marked.id AND conflicts.open_until IS DISTINCT FROM marked.until;
    END IF;
END $$
;
CREATE OR REPLACE FUNCTION show_conflict_of_member() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM mark_conflicts(ARRAY[OLD.conflict_id]);
    ELSE
        -- A change of these memories ends before the mark, or sees the member and marks it again.
        PERFORM FROM memories WHERE id IN (NEW.memory_id, NEW.against_id) ORDER BY id FOR SHARE;
        PERFORM mark_conflicts(ARRAY[NEW.conflict_id]);
    END IF;
    RETURN NULL;
END $$
;
CREATE OR REPLACE FUNCTION show_conflict() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM mark_conflicts(ARRAY[NEW.id]);
    RETURN NULL;
END $$
;
CREATE OR REPLACE FUNCTION show_suggestion() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- A change of these memories ends before the mark, or sees the suggestion and marks it again.
    PERFORM FROM memories WHERE id = ANY (ARRAY(
        SELECT CAST(target ->> 'memory_id' AS uuid)
        FROM jsonb_array_elements(NEW.targets) AS target))
    ORDER BY id FOR SHARE;
    PERFORM mark_suggestions(ARRAY[NEW.id]);
    RETURN NULL;
END $$
;
CREATE OR REPLACE FUNCTION show_decisions_of_memory() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE ids uuid[];
BEGIN
    ids := ARRAY(
        SELECT s.id FROM suggestions s
        WHERE s.state = 'OPEN' AND NOT s.outdated
          AND s.targets @> jsonb_build_array(jsonb_build_object('memory_id', OLD.id))
        UNION
        SELECT r.suggestion_id FROM receipts r
        WHERE r.memory_id = OLD.id AND r.suggestion_id IS NOT NULL);
    IF OLD.version = NEW.version THEN
        -- The same version of another state or project: a suggestion of it can be valid again.
        ids := ids || ARRAY(
            SELECT s.id FROM suggestions s
            WHERE s.state = 'OPEN' AND s.targets @> jsonb_build_array(jsonb_build_object(
                'memory_id', OLD.id, 'version', OLD.version)));
    END IF;
    IF ids <> '{}' THEN
        PERFORM mark_suggestions(ids);
    END IF;
    ids := ARRAY(
        SELECT DISTINCT conflict_id FROM conflict_members
        WHERE memory_id = OLD.id AND text_hash IN (OLD.text_hash, NEW.text_hash));
    IF ids <> '{}' THEN
        PERFORM mark_conflicts(ids);
    END IF;
    RETURN NULL;
END $$
;
CREATE OR REPLACE FUNCTION show_conflicts_of_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM mark_conflicts(ARRAY(SELECT id FROM conflicts WHERE resolved_by = NEW.id));
    RETURN NULL;
END $$
;
CREATE OR REPLACE FUNCTION show_suggestions_of_lane() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM mark_suggestions(ARRAY(
        SELECT id FROM suggestions WHERE lane_id = NEW.id AND state = 'OPEN'));
    RETURN NULL;
END $$

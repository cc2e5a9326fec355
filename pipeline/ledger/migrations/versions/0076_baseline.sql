CREATE FUNCTION book_edit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, owner, amount, last_at)
    SELECT NEW.project_id, kind, owner, 0, NEW.updated_at
    FROM (VALUES ('user', NEW.user_id), ('agent', NEW.agent_id), ('app', NEW.app_id), ('run', CASE WHEN NOT NEW.temporary THEN NEW.run_id END)) AS line (kind, owner) WHERE owner IS NOT NULL; RETURN NULL; END $$;

CREATE FUNCTION book_events_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind, sum(amount * sign) FROM (SELECT -1 AS sign, project_id, status, event_type, replays FROM before) e CROSS JOIN LATERAL (VALUES (status, 1), (event_type, 1), ('REPLAY', replays)) AS line (kind, amount)
    GROUP BY project_id, kind HAVING sum(amount * sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION book_events_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind, sum(amount * sign) FROM (SELECT 1 AS sign, project_id, status, event_type, replays FROM after) e CROSS JOIN LATERAL (VALUES (status, 1), (event_type, 1), ('REPLAY', replays)) AS line (kind, amount)
    GROUP BY project_id, kind HAVING sum(amount * sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION book_events_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind, sum(amount * sign) FROM (SELECT -1 AS sign, project_id, status, event_type, replays FROM before UNION ALL SELECT 1, project_id, status, event_type, replays FROM after) e CROSS JOIN LATERAL (VALUES (status, 1), (event_type, 1), ('REPLAY', replays)) AS line (kind, amount)
    GROUP BY project_id, kind HAVING sum(amount * sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION book_memory() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP <> 'INSERT' AND OLD.state = 'ACTIVE' THEN INSERT INTO book_entries (project_id, kind, owner, amount, since, last_at)
    SELECT OLD.project_id, kind, owner, -1, OLD.created_at, OLD.updated_at
    FROM (VALUES ('MEMORY', ''), ('user', OLD.user_id), ('agent', OLD.agent_id), ('app', OLD.app_id), ('run', CASE WHEN NOT OLD.temporary THEN OLD.run_id END)) AS line (kind, owner) WHERE owner IS NOT NULL; END IF; IF TG_OP <> 'DELETE' AND NEW.state = 'ACTIVE' THEN INSERT INTO book_entries (project_id, kind, owner, amount, since, last_at)
    SELECT NEW.project_id, kind, owner, 1, NEW.created_at, NEW.updated_at
    FROM (VALUES ('MEMORY', ''), ('user', NEW.user_id), ('agent', NEW.agent_id), ('app', NEW.app_id), ('run', CASE WHEN NOT NEW.temporary THEN NEW.run_id END)) AS line (kind, owner) WHERE owner IS NOT NULL; END IF; RETURN NULL; END $$;

CREATE FUNCTION book_numbers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP <> 'INSERT' THEN
        INSERT INTO book_entries (project_id, kind, amount)
        VALUES (OLD.project_id, 'NUMBER', -OLD.accepted_seq);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO book_entries (project_id, kind, amount)
        VALUES (NEW.project_id, 'NUMBER', NEW.accepted_seq);
    END IF; RETURN NULL; END $$;

CREATE FUNCTION copy_valid_from() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    NEW.said_at := NEW.valid_from;
    RETURN NEW; END $$;

CREATE FUNCTION count_owners_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind || 's', sum(sign) FROM (SELECT project_id, kind, owner, amount, -1 AS sign FROM before) changed
    WHERE owner <> '' AND amount > 0
    GROUP BY project_id, kind HAVING sum(sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION count_owners_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind || 's', sum(sign) FROM (SELECT project_id, kind, owner, amount, 1 AS sign FROM after) changed
    WHERE owner <> '' AND amount > 0
    GROUP BY project_id, kind HAVING sum(sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION count_owners_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind || 's', sum(sign) FROM (SELECT project_id, kind, owner, amount, 1 AS sign FROM after UNION ALL SELECT project_id, kind, owner, amount, -1 AS sign FROM before) changed
    WHERE owner <> '' AND amount > 0
    GROUP BY project_id, kind HAVING sum(sign) <> 0; RETURN NULL; END $$;

CREATE FUNCTION enter_private_run() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    this bytea := private_run_digest(NEW.project_id, NEW.run_id);
    state text;
BEGIN
    SELECT privacy INTO state FROM private_runs
    WHERE project_id = NEW.project_id AND digest = this FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(encode(this, 'hex'), 0));
        SELECT privacy INTO state FROM private_runs
        WHERE project_id = NEW.project_id AND digest = this FOR KEY SHARE;
    END IF;
    NEW.temporary := state IS NOT DISTINCT FROM 'temporary';
    IF state IN ('incognito', 'ended') AND NEW.accepted_seq > 0 THEN
        RAISE EXCEPTION 'The run stores nothing.'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'private_run_' || state;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION keep_past_state() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE since timestamptz := coalesce(OLD.stored_at, OLD.updated_at);
BEGIN
    NEW.stored_at := greatest(now(), since);
    IF OLD.project_id = NEW.project_id AND since < NEW.stored_at THEN
        INSERT INTO past_states (memory_id, stored_at, replaced_at, project_id, lane_id, user_id, agent_id, app_id, run_id, text, terms, metadata, categories, attributed_to, state, immutable, expiration_date, embedding, embedder, version, event_id, message_ordinal, said_at, valid_from, kind, memory_type, subject, attribute, slot, speaker, confidence, superseded_by, appended, replaced_by, created_at, updated_at, pinned, edited_at, cardinality)
        VALUES (OLD.id, since, NEW.stored_at, OLD.project_id, OLD.lane_id, OLD.user_id, OLD.agent_id, OLD.app_id, OLD.run_id, OLD.text, OLD.terms, OLD.metadata, OLD.categories, OLD.attributed_to, OLD.state, OLD.immutable, OLD.expiration_date, OLD.embedding, OLD.embedder, OLD.version, OLD.event_id, OLD.message_ordinal, OLD.said_at, OLD.valid_from, OLD.kind, OLD.memory_type, OLD.subject, OLD.attribute, OLD.slot, OLD.speaker, OLD.confidence, OLD.superseded_by, OLD.appended, OLD.replaced_by, OLD.created_at, OLD.updated_at, OLD.pinned, OLD.edited_at, OLD.cardinality);
    END IF;
    RETURN NEW; END $$;

CREATE FUNCTION mark_profile() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    this_transaction bigint := pg_current_xact_id()::text::bigint;
    of_project uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.project_id ELSE NEW.project_id END;
    of_user text := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
    on_now boolean;
BEGIN
    SELECT profile_settings @> '{"enabled": true}' INTO on_now FROM projects
    WHERE id = of_project AND profile_settings IS NOT NULL;
    IF on_now IS NULL THEN
        RETURN NULL;
    END IF;
    IF on_now AND TG_OP <> 'DELETE' THEN
        INSERT INTO profiles AS p (project_id, user_id, due_at, changed_in)
        VALUES (of_project, of_user, now(), this_transaction)
        ON CONFLICT (project_id, user_id) DO UPDATE SET
            changes = p.changes + 1, changed_in = this_transaction,
            due_at = coalesce(p.due_at, now())
        WHERE p.changed_in <> this_transaction;
    ELSE
        UPDATE profiles SET
            changes = changes + 1, changed_in = this_transaction,
            due_at = CASE WHEN on_now THEN coalesce(due_at, now()) END
        WHERE project_id = of_project AND user_id = of_user AND changed_in <> this_transaction;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION mark_temporary() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.temporary := coalesce((SELECT temporary FROM lanes WHERE id = NEW.lane_id), false);
    RETURN NEW;
END $$;

CREATE FUNCTION owners_named(project_id uuid, options jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
SELECT ARRAY(
    SELECT project_id || '/' || kind || '/' || (value #>> '{}') FROM (
        SELECT 'user', jsonb_path_query(options, '$.**.user_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'agent', jsonb_path_query(options, '$.**.agent_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'app', jsonb_path_query(options, '$.**.app_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'run', jsonb_path_query(options, '$.**.run_id.** ? (@.type() == "string")')
    ) named (kind, value))
$_$;

CREATE FUNCTION private_run_digest(project_id uuid, run_id text) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
SELECT sha256(convert_to(project_id || '/' || run_id, 'UTF8'))
$$;

CREATE FUNCTION queue_entities_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox (project_id, lane_id, entity_id, gone)
        SELECT project_id, lane_id, id, true FROM before; END IF; RETURN NULL; END $$;

CREATE FUNCTION queue_entities_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox (project_id, lane_id, entity_id)
        SELECT project_id, lane_id, id FROM after; END IF; RETURN NULL; END $$;

CREATE FUNCTION queue_entities_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox (project_id, lane_id, entity_id)
        SELECT a.project_id, a.lane_id, a.id FROM after a JOIN before b USING (id)
        WHERE (a.name, a.plain_name, a.kind, a.qualifier, a.merged_into, a.root_id, a.project_id, a.lane_id) IS DISTINCT FROM (b.name, b.plain_name, b.kind, b.qualifier, b.merged_into, b.root_id, b.project_id, b.lane_id); END IF; RETURN NULL; END $$;

CREATE FUNCTION queue_event_to_seal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO seal_queue (project_id, kind, row_id)
        SELECT id, 'event', NEW.id FROM projects WHERE id = NEW.project_id AND tamper_evidence; RETURN NULL; END $$;

CREATE FUNCTION queue_history_to_seal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO seal_queue (project_id, kind, row_id, row_no)
        SELECT id, 'history', NEW.memory_id, NEW.version
        FROM projects WHERE id = NEW.project_id AND tamper_evidence; RETURN NULL; END $$;

CREATE FUNCTION queue_receipt_to_seal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO seal_queue (project_id, kind, row_id, row_no)
        SELECT p.id, 'receipt', NEW.event_id, NEW.ordinal
        FROM events e JOIN projects p ON p.id = e.project_id
        WHERE e.id = NEW.event_id AND p.tamper_evidence; RETURN NULL; END $$;

CREATE FUNCTION queue_relations_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox
            (project_id, lane_id, relation_id, source_id, gone)
        SELECT project_id, lane_id, id, source_id, true FROM before; END IF; RETURN NULL; END $$;

CREATE FUNCTION queue_relations_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox (project_id, lane_id, relation_id)
        SELECT project_id, lane_id, id FROM after; END IF; RETURN NULL; END $$;

CREATE FUNCTION queue_relations_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF EXISTS (SELECT FROM graph_mirrors) THEN INSERT INTO graph_outbox
            (project_id, lane_id, relation_id, source_id, gone)
        SELECT b.project_id, b.lane_id, b.id, b.source_id, true
        FROM after a JOIN before b USING (id)
        WHERE (a.source_id, a.destination_id) <> (b.source_id, b.destination_id);
        INSERT INTO graph_outbox (project_id, lane_id, relation_id)
        SELECT project_id, lane_id, id FROM after; END IF; RETURN NULL; END $$;

CREATE FUNCTION share_cost(of_batch uuid, of_model text, on_day date, all_calls bigint, all_prompt bigint, all_completion bigint, all_nano bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
    INSERT INTO event_costs AS kept (event_id, calls, prompt_tokens, completion_tokens, cost_nano_usd)
    SELECT id, all_calls * upto / total - all_calls * (upto - weight) / total, all_prompt * upto / total - all_prompt * (upto - weight) / total, all_completion * upto / total - all_completion * (upto - weight) / total,
           all_nano * upto / total - all_nano * (upto - weight) / total
    FROM (
        SELECT id, greatest(tokens, 1)::bigint AS weight,
               (sum(greatest(tokens, 1)) OVER (ORDER BY seq))::bigint AS upto,
               (sum(greatest(tokens, 1)) OVER ())::bigint AS total
        FROM events WHERE batch_id = of_batch
    ) sharing
    ON CONFLICT (event_id) DO UPDATE SET calls = kept.calls + excluded.calls, prompt_tokens = kept.prompt_tokens + excluded.prompt_tokens, completion_tokens = kept.completion_tokens + excluded.completion_tokens, cost_nano_usd = CASE
        WHEN kept.cost_nano_usd IS NULL THEN excluded.cost_nano_usd
        ELSE kept.cost_nano_usd + coalesce(excluded.cost_nano_usd, 0) END;
    INSERT INTO usage_daily AS kept (project_id, user_id, day, model, part, calls, prompt_tokens, completion_tokens, cost_nano_usd)
    SELECT paying.project_id, line.user_id, on_day, of_model, line.part,
           all_calls, all_prompt, all_completion, all_nano
    FROM (
        -- A replay in a shadow is paid for by the project whose scope it repeats.
        SELECT coalesce(s.project_id, e.project_id) AS project_id, l.user_id
        FROM events e JOIN lanes l ON l.id = e.lane_id LEFT JOIN shadows s ON s.id = e.project_id
        WHERE e.batch_id = of_batch LIMIT 1
    ) paying CROSS JOIN LATERAL (
        VALUES ('', (abs(hashtext(of_batch::text)::bigint) % 8)::smallint),
               (paying.user_id, 0::smallint)
    ) line (user_id, part)
    WHERE line.user_id IS NOT NULL
    ON CONFLICT (project_id, user_id, day, model, part) DO UPDATE SET calls = kept.calls + excluded.calls, prompt_tokens = kept.prompt_tokens + excluded.prompt_tokens, completion_tokens = kept.completion_tokens + excluded.completion_tokens, cost_nano_usd = CASE
        WHEN kept.cost_nano_usd IS NULL THEN excluded.cost_nano_usd
        ELSE kept.cost_nano_usd + coalesce(excluded.cost_nano_usd, 0) END;
END $$;

CREATE FUNCTION share_run() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN PERFORM share_cost(NEW.batch_id, NEW.model, (NEW.finished_at AT TIME ZONE 'UTC')::date,
    NEW.calls, NEW.prompt_tokens, NEW.completion_tokens, round(NEW.cost_usd * 1e9)::bigint); RETURN NULL; END $$;

CREATE FUNCTION word_keys(project_id uuid, lane_id uuid, user_id text, agent_id text, app_id text, run_id text, terms text[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
SELECT array_agg(hashtextextended(key, seed)) FROM (
    SELECT DISTINCT 'term/' || term AS key FROM unnest(terms) AS t (term)
    UNION ALL
    SELECT key FROM unnest(ARRAY[
        'lane/' || lane_id, 'user_id/' || user_id, 'agent_id/' || agent_id, 'app_id/' || app_id,
        'run_id/' || run_id
    ]) AS o (key) WHERE key IS NOT NULL
) keys, hashtextextended(project_id::text, 0) AS seed
$$;

CREATE TABLE answer_sources (
    lane_id uuid NOT NULL,
    batch_id uuid NOT NULL,
    CONSTRAINT pk_answer_sources PRIMARY KEY (lane_id, batch_id)
);

CREATE INDEX ix_answer_sources_batch_id ON answer_sources USING btree (batch_id);

CREATE TABLE audit_entries (
    project_id uuid NOT NULL,
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    at timestamp with time zone DEFAULT now() NOT NULL,
    key_id uuid NOT NULL,
    token_id uuid,
    action text NOT NULL,
    target uuid,
    status smallint,
    CONSTRAINT pk_audit_entries PRIMARY KEY (project_id, id)
);

CREATE INDEX ix_audit_entries_at ON audit_entries USING btree (at);

CREATE TABLE book_entries (
    project_id uuid NOT NULL,
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    kind text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    amount bigint NOT NULL,
    since timestamp with time zone,
    last_at timestamp with time zone,
    CONSTRAINT pk_book_entries PRIMARY KEY (project_id, id)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE TABLE books (
    project_id uuid NOT NULL,
    kind text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    amount bigint NOT NULL,
    since timestamp with time zone,
    last_at timestamp with time zone,
    CONSTRAINT pk_books PRIMARY KEY (project_id, kind, owner)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_books_owners ON books USING btree (project_id, kind, since DESC, owner) WHERE ((owner <> ''::text) AND (amount > 0));

CREATE INDEX ix_books_totals ON books USING btree (kind) WHERE (owner = ''::text);

CREATE INDEX ix_books_zero ON books USING btree (amount) WHERE (amount = 0);

CREATE TABLE cleared_lanes (
    event_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    before_seq bigint NOT NULL,
    after_seq bigint NOT NULL,
    CONSTRAINT pk_cleared_lanes PRIMARY KEY (event_id, lane_id)
);

CREATE INDEX ix_cleared_lanes_lane_id ON cleared_lanes USING btree (lane_id);

CREATE TABLE conflicts (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    slot text NOT NULL,
    event_id uuid NOT NULL,
    resolved_by uuid,
    resolution text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    resolved_at timestamp with time zone,
    CONSTRAINT ck_conflicts_resolution CHECK ((resolution = ANY (ARRAY['ONE'::text, 'BOTH'::text, 'TEXT'::text]))),
    CONSTRAINT pk_conflicts PRIMARY KEY (id)
);

CREATE INDEX ix_conflicts_lane_id ON conflicts USING btree (lane_id);

CREATE INDEX ix_conflicts_project ON conflicts USING btree (project_id, created_at DESC, id);

CREATE TABLE conflict_members (
    conflict_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    against_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    text_hash bytea NOT NULL,
    CONSTRAINT pk_conflict_members PRIMARY KEY (conflict_id, memory_id, against_id),
    CONSTRAINT fk_conflict_members_conflict_id FOREIGN KEY (conflict_id) REFERENCES conflicts(id) ON DELETE CASCADE
);

CREATE INDEX ix_conflict_members_lane_id ON conflict_members USING btree (lane_id);

CREATE INDEX ix_conflict_members_memory_id ON conflict_members USING btree (memory_id);

CREATE TABLE cooldowns (
    provider text NOT NULL,
    failures integer DEFAULT 1 NOT NULL,
    probe_at timestamp with time zone NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    project_id uuid,
    cause text,
    code text,
    CONSTRAINT pk_cooldowns PRIMARY KEY (provider)
);

CREATE TABLE curator_runs (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    origin text NOT NULL,
    state text DEFAULT 'QUEUED'::text NOT NULL,
    fence bigint DEFAULT '0'::bigint NOT NULL,
    due_at timestamp with time zone,
    attempts smallint DEFAULT '0'::smallint NOT NULL,
    waits smallint DEFAULT '0'::smallint NOT NULL,
    accepted_seq bigint NOT NULL,
    steps integer DEFAULT 0 NOT NULL,
    malformed smallint DEFAULT '0'::smallint NOT NULL,
    suggested integer DEFAULT 0 NOT NULL,
    dropped integer DEFAULT 0 NOT NULL,
    max_suggestions integer NOT NULL,
    max_tokens integer NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    calls integer DEFAULT 0 NOT NULL,
    prompt_tokens integer DEFAULT 0 NOT NULL,
    completion_tokens integer DEFAULT 0 NOT NULL,
    cost_usd double precision,
    code text,
    note text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    completed_at timestamp with time zone,
    hinted boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_curator_runs_completed CHECK ((((state = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text])) = (completed_at IS NULL)) AND ((completed_at IS NULL) = (due_at IS NOT NULL)))),
    CONSTRAINT ck_curator_runs_origin CHECK ((origin = ANY (ARRAY['request'::text, 'schedule'::text]))),
    CONSTRAINT ck_curator_runs_state CHECK ((state = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'CANCELLED'::text]))),
    CONSTRAINT pk_curator_runs PRIMARY KEY (id)
);

CREATE INDEX ix_curator_runs_due ON curator_runs USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_curator_runs_lane ON curator_runs USING btree (lane_id, created_at DESC);

CREATE INDEX ix_curator_runs_open ON curator_runs USING btree (project_id, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_curator_runs_project ON curator_runs USING btree (project_id, created_at DESC, id);

CREATE UNIQUE INDEX uq_curator_runs_open ON curator_runs USING btree (lane_id) WHERE (completed_at IS NULL);

CREATE TABLE curator_steps (
    run_id uuid NOT NULL,
    ordinal integer NOT NULL,
    lane_id uuid NOT NULL,
    centres uuid[] NOT NULL,
    shown jsonb NOT NULL,
    answer jsonb,
    acted_at timestamp with time zone,
    CONSTRAINT pk_curator_steps PRIMARY KEY (run_id, ordinal),
    CONSTRAINT fk_curator_steps_run_id FOREIGN KEY (run_id) REFERENCES curator_runs(id) ON DELETE CASCADE
);

CREATE INDEX ix_curator_steps_lane_id ON curator_steps USING btree (lane_id);

CREATE TABLE entities (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    kind text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    plain_name text,
    qualifier text,
    mentioned_at timestamp with time zone,
    merged_into uuid,
    root_id uuid,
    merge_reason text,
    merged_at timestamp with time zone,
    mentions integer DEFAULT 1 NOT NULL,
    CONSTRAINT pk_entities PRIMARY KEY (id),
    CONSTRAINT uq_entities_lane_id_name_key UNIQUE (lane_id, name_key)
);

CREATE INDEX ix_entities_name ON entities USING btree (project_id, COALESCE(plain_name, name_key), mentioned_at DESC NULLS LAST);

CREATE INDEX ix_entities_plain ON entities USING btree (lane_id, COALESCE(plain_name, name_key));

CREATE INDEX ix_entities_root ON entities USING btree (root_id) WHERE (root_id IS NOT NULL);

CREATE TABLE event_costs (
    event_id uuid NOT NULL,
    calls bigint DEFAULT '0'::bigint NOT NULL,
    prompt_tokens bigint DEFAULT '0'::bigint NOT NULL,
    completion_tokens bigint DEFAULT '0'::bigint NOT NULL,
    cost_nano_usd bigint,
    CONSTRAINT pk_event_costs PRIMARY KEY (event_id)
);

CREATE TABLE failed_runs (
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    batch_id uuid NOT NULL,
    stage text NOT NULL,
    code text NOT NULL,
    model text NOT NULL,
    calls integer NOT NULL,
    prompt_tokens integer NOT NULL,
    completion_tokens integer NOT NULL,
    cost_usd double precision,
    ms double precision NOT NULL,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    prompt text DEFAULT ''::text NOT NULL,
    CONSTRAINT pk_failed_runs PRIMARY KEY (id)
);

CREATE INDEX ix_failed_runs_batch ON failed_runs USING btree (batch_id);

CREATE TABLE graph_mirrors (
    name text NOT NULL,
    filled_at timestamp with time zone,
    CONSTRAINT pk_graph_mirrors PRIMARY KEY (name)
);

CREATE TABLE graph_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    entity_id uuid,
    relation_id uuid,
    source_id uuid,
    gone boolean DEFAULT false NOT NULL,
    queued_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_graph_outbox PRIMARY KEY (id)
);

CREATE INDEX ix_graph_outbox_lane ON graph_outbox USING btree (project_id, lane_id);

CREATE TABLE graph_receipts (
    event_id uuid NOT NULL,
    ordinal smallint NOT NULL,
    outcome text NOT NULL,
    relation_id uuid,
    memory_id uuid,
    source text NOT NULL,
    relation text NOT NULL,
    destination text NOT NULL,
    reason text NOT NULL,
    message_ordinal smallint NOT NULL,
    CONSTRAINT pk_graph_receipts PRIMARY KEY (event_id, ordinal)
);

CREATE TABLE idempotency_keys (
    project_id uuid NOT NULL,
    key text NOT NULL,
    digest bytea NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (project_id, key)
);

CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys USING btree (created_at);

CREATE INDEX ix_idempotency_keys_event_id ON idempotency_keys USING btree (event_id);

CREATE TABLE kept_answers (
    lane_id uuid NOT NULL,
    digest bytea NOT NULL,
    project_id uuid NOT NULL,
    answer jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT pk_kept_answers PRIMARY KEY (lane_id, digest)
);

CREATE INDEX ix_kept_answers_expires_at ON kept_answers USING btree (expires_at);

CREATE TABLE lanes (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    accepted_seq bigint DEFAULT '0'::bigint NOT NULL,
    settled_seq bigint DEFAULT '0'::bigint NOT NULL,
    state text NOT NULL,
    stage text DEFAULT 'extract'::text NOT NULL,
    batch_id uuid,
    fence bigint DEFAULT '0'::bigint NOT NULL,
    owner uuid,
    due_at timestamp with time zone,
    attempts smallint DEFAULT '0'::smallint NOT NULL,
    waits smallint DEFAULT '0'::smallint NOT NULL,
    wait_code text,
    width smallint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    forgotten_seq bigint DEFAULT '0'::bigint NOT NULL,
    wait_cause text,
    epoch bigint DEFAULT '0'::bigint NOT NULL,
    temporary boolean DEFAULT false NOT NULL,
    next_curation_at timestamp with time zone,
    normal_seq bigint,
    CONSTRAINT ck_lanes_due CHECK (((state = 'IDLE'::text) = (due_at IS NULL))),
    CONSTRAINT ck_lanes_state CHECK ((state = ANY (ARRAY['IDLE'::text, 'QUEUED'::text, 'RUNNING'::text, 'WAITING'::text]))),
    CONSTRAINT pk_lanes PRIMARY KEY (id)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02', fillfactor='70');

CREATE INDEX ix_lanes_agent ON lanes USING btree (project_id, agent_id) WHERE (agent_id IS NOT NULL);

CREATE INDEX ix_lanes_app ON lanes USING btree (project_id, app_id) WHERE (app_id IS NOT NULL);

CREATE INDEX ix_lanes_curation ON lanes USING btree (project_id, next_curation_at) WHERE (next_curation_at IS NOT NULL);

CREATE INDEX ix_lanes_due ON lanes USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_lanes_owner ON lanes USING btree (project_id, user_id);

CREATE INDEX ix_lanes_run ON lanes USING btree (project_id, run_id) WHERE (run_id IS NOT NULL);

CREATE INDEX ix_lanes_temporary ON lanes USING btree (id) WHERE temporary;

CREATE TABLE events (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    seq bigint NOT NULL,
    event_type text DEFAULT 'ADD'::text NOT NULL,
    status text DEFAULT 'PENDING'::text NOT NULL,
    options jsonb NOT NULL,
    tokens integer NOT NULL,
    batch_id uuid,
    failure_code text,
    failure_detail text,
    graph_status text,
    note text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    replays smallint DEFAULT '0'::smallint NOT NULL,
    replayed_at timestamp with time zone,
    undone_at timestamp with time zone,
    earlier_tries jsonb DEFAULT '[]'::jsonb NOT NULL,
    copy_of uuid,
    erased_at timestamp with time zone,
    mode text,
    mode_reason text,
    traceparent text,
    CONSTRAINT ck_events_completed CHECK (((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])) = (completed_at IS NULL))),
    CONSTRAINT ck_events_status CHECK ((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'CANCELLED'::text]))),
    CONSTRAINT pk_events PRIMARY KEY (id),
    CONSTRAINT uq_events_lane_id_seq UNIQUE (lane_id, seq),
    CONSTRAINT fk_events_lane_id FOREIGN KEY (lane_id) REFERENCES lanes(id)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_events_batch ON events USING btree (batch_id) WHERE (batch_id IS NOT NULL);

CREATE INDEX ix_events_code ON events USING btree (project_id, failure_code, created_at) WHERE (failure_code IS NOT NULL);

CREATE INDEX ix_events_ended ON events USING btree (completed_at) WHERE (completed_at IS NOT NULL);

CREATE INDEX ix_events_feed ON events USING btree (project_id, created_at);

CREATE INDEX ix_events_graph ON events USING btree (project_id, graph_status, created_at) WHERE (graph_status = ANY (ARRAY['FAILED'::text, 'PARTIAL'::text]));

CREATE INDEX ix_events_not_add ON events USING btree (project_id, lane_id) WHERE (event_type <> 'ADD'::text);

CREATE INDEX ix_events_open ON events USING btree (project_id, COALESCE(replayed_at, created_at)) WHERE (completed_at IS NULL);

CREATE INDEX ix_events_owners_named ON events USING gin (owners_named(project_id, options)) WHERE ((event_type <> 'ADD'::text) AND (event_type <> 'DRY_RUN'::text));

CREATE INDEX ix_events_unsuccessful ON events USING btree (project_id, created_at) WHERE (status = ANY (ARRAY['FAILED'::text, 'CANCELLED'::text]));

CREATE TABLE erasures (
    event_id uuid NOT NULL,
    project_id uuid NOT NULL,
    kind text NOT NULL,
    counts jsonb NOT NULL,
    memory_ids uuid[],
    due_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    of_session boolean DEFAULT false NOT NULL,
    owner_hashes bigint[],
    CONSTRAINT ck_erasures_due CHECK (((memory_ids IS NULL) = (due_at IS NULL))),
    CONSTRAINT ck_erasures_kind CHECK ((kind = ANY (ARRAY['user'::text, 'agent'::text, 'app'::text, 'run'::text]))),
    CONSTRAINT pk_erasures PRIMARY KEY (event_id),
    CONSTRAINT fk_erasures_event_id FOREIGN KEY (event_id) REFERENCES events(id)
);

CREATE INDEX ix_erasures_due ON erasures USING btree (of_session, due_at) WHERE (due_at IS NOT NULL);

CREATE TABLE memories (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    text text NOT NULL,
    text_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    attributed_to text NOT NULL,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    immutable boolean DEFAULT false NOT NULL,
    expiration_date date,
    embedding bytea NOT NULL,
    embedder text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    projected_version integer DEFAULT 0 NOT NULL,
    event_id uuid,
    message_ordinal smallint,
    valid_from timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    replaced_by uuid,
    categories text[] DEFAULT '{}'::text[] NOT NULL,
    terms text[] DEFAULT '{}'::text[] NOT NULL,
    owed boolean GENERATED ALWAYS AS ((projected_version <> version)) STORED,
    said_at timestamp with time zone NOT NULL,
    kind text DEFAULT 'other'::text NOT NULL,
    memory_type text DEFAULT 'semantic'::text NOT NULL,
    subject text,
    attribute text,
    slot text,
    speaker text,
    confidence double precision,
    superseded_by uuid,
    appended boolean DEFAULT false NOT NULL,
    stored_at timestamp with time zone DEFAULT now(),
    pinned boolean DEFAULT false NOT NULL,
    edited_at timestamp with time zone,
    forgotten_at timestamp with time zone,
    temporary boolean DEFAULT false NOT NULL,
    cardinality text,
    CONSTRAINT ck_memories_state CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'RETIRED'::text]))),
    CONSTRAINT pk_memories PRIMARY KEY (id),
    CONSTRAINT uq_memories_active_text EXCLUDE USING btree (lane_id WITH =, text_hash WITH =) WHERE ((state = 'ACTIVE'::text)) DEFERRABLE INITIALLY DEFERRED
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_memories_active ON memories USING btree (lane_id) WHERE (state = 'ACTIVE'::text);

CREATE INDEX ix_memories_agent ON memories USING btree (project_id, agent_id, created_at) WHERE (agent_id IS NOT NULL);

CREATE INDEX ix_memories_app ON memories USING btree (project_id, app_id, created_at) WHERE (app_id IS NOT NULL);

CREATE INDEX ix_memories_appended ON memories USING btree (lane_id, slot, said_at, id) WHERE (appended AND (state = 'ACTIVE'::text));

CREATE INDEX ix_memories_cardinality ON memories USING btree (lane_id, attribute, cardinality) WHERE ((cardinality IS NOT NULL) AND (state = 'ACTIVE'::text));

CREATE INDEX ix_memories_forgotten ON memories USING btree (lane_id, text_hash) WHERE (forgotten_at IS NOT NULL);

CREATE INDEX ix_memories_lane ON memories USING btree (lane_id);

CREATE INDEX ix_memories_owed ON memories USING btree (updated_at) WHERE owed;

CREATE INDEX ix_memories_owed_embedder ON memories USING btree (embedder) WHERE owed;

CREATE INDEX ix_memories_run ON memories USING btree (project_id, run_id, created_at) WHERE (run_id IS NOT NULL);

CREATE INDEX ix_memories_shown ON memories USING btree (project_id, created_at) WHERE (NOT temporary);

CREATE INDEX ix_memories_slot ON memories USING btree (lane_id, slot, said_at, id) WHERE ((slot IS NOT NULL) AND (state = 'ACTIVE'::text));

CREATE INDEX ix_memories_user ON memories USING btree (project_id, user_id, created_at);

CREATE INDEX ix_memories_words ON memories USING gin (word_keys(project_id, lane_id, user_id, agent_id, app_id, run_id, terms)) WITH (fastupdate=off) WHERE (state = 'ACTIVE'::text);

CREATE TABLE feedback (
    memory_id uuid NOT NULL,
    project_id uuid NOT NULL,
    feedback text NOT NULL,
    reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_feedback_feedback CHECK ((feedback = ANY (ARRAY['POSITIVE'::text, 'NEGATIVE'::text, 'VERY_NEGATIVE'::text]))),
    CONSTRAINT pk_feedback PRIMARY KEY (memory_id),
    CONSTRAINT fk_feedback_memory_id FOREIGN KEY (memory_id) REFERENCES memories(id) ON DELETE CASCADE
);

CREATE TABLE memory_accesses (
    memory_id uuid NOT NULL,
    project_id uuid NOT NULL,
    accesses integer NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT pk_memory_accesses PRIMARY KEY (memory_id),
    CONSTRAINT fk_memory_accesses_memory_id FOREIGN KEY (memory_id) REFERENCES memories(id) ON DELETE CASCADE
);

CREATE TABLE memory_history (
    memory_id uuid NOT NULL,
    version integer NOT NULL,
    project_id uuid NOT NULL,
    event text NOT NULL,
    old_text text,
    new_text text,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    reason text,
    event_id uuid,
    message_ordinal smallint,
    valid_from timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expiration_date date,
    undoes uuid,
    said_at timestamp with time zone,
    structure jsonb,
    key_id uuid,
    temporary boolean DEFAULT false NOT NULL,
    CONSTRAINT pk_memory_history PRIMARY KEY (memory_id, version)
);

CREATE INDEX ix_memory_history_event ON memory_history USING btree (event_id) WHERE (event_id IS NOT NULL);

CREATE INDEX ix_memory_history_feed ON memory_history USING btree (project_id, created_at DESC, memory_id, version DESC);

CREATE INDEX ix_memory_history_shown ON memory_history USING btree (project_id, created_at DESC, memory_id, version DESC) WHERE (NOT temporary);

CREATE TABLE memory_reads (
    memory_id uuid NOT NULL,
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    project_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    question text NOT NULL,
    place smallint NOT NULL,
    score double precision NOT NULL,
    CONSTRAINT pk_memory_reads PRIMARY KEY (memory_id, id),
    CONSTRAINT fk_memory_reads_memory_id FOREIGN KEY (memory_id) REFERENCES memories(id) ON DELETE CASCADE
);

CREATE INDEX ix_memory_reads_at ON memory_reads USING btree (at);

CREATE TABLE messages (
    lane_id uuid NOT NULL,
    seq bigint NOT NULL,
    ordinal smallint NOT NULL,
    role text NOT NULL,
    name text,
    content text NOT NULL,
    said_at timestamp with time zone NOT NULL,
    terms text[] DEFAULT '{}'::text[],
    omitted jsonb,
    CONSTRAINT pk_messages PRIMARY KEY (lane_id, seq, ordinal)
);

CREATE INDEX ix_messages_order ON messages USING btree (lane_id, said_at, seq, ordinal);

CREATE INDEX ix_messages_uncut ON messages USING btree (lane_id, seq) WHERE (terms IS NULL);

CREATE TABLE organizations (
    id uuid NOT NULL,
    name text NOT NULL,
    operator boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_organizations PRIMARY KEY (id)
);

CREATE TABLE own_collections (
    name text NOT NULL,
    project_id uuid NOT NULL,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    state text NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    filled_at timestamp with time zone,
    filled_id uuid,
    records bigint DEFAULT '0'::bigint NOT NULL,
    checked_at timestamp with time zone,
    CONSTRAINT ck_own_collections_state CHECK ((state = ANY (ARRAY['FILLING'::text, 'SERVED'::text]))),
    CONSTRAINT pk_own_collections PRIMARY KEY (name)
);

CREATE INDEX ix_own_collections_project_id ON own_collections USING btree (project_id);

CREATE TABLE owners (
    project_id uuid NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_owners_kind CHECK ((kind = ANY (ARRAY['user'::text, 'agent'::text, 'app'::text, 'run'::text]))),
    CONSTRAINT pk_owners PRIMARY KEY (project_id, kind, id)
);

CREATE INDEX ix_owners_newest ON owners USING btree (project_id, kind, created_at DESC, id);

CREATE TABLE past_states (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    memory_id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    text text NOT NULL,
    terms text[] NOT NULL,
    metadata jsonb NOT NULL,
    categories text[] NOT NULL,
    attributed_to text NOT NULL,
    state text NOT NULL,
    immutable boolean NOT NULL,
    expiration_date date,
    embedding bytea NOT NULL,
    embedder text NOT NULL,
    version integer NOT NULL,
    event_id uuid,
    message_ordinal smallint,
    said_at timestamp with time zone NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    kind text NOT NULL,
    memory_type text NOT NULL,
    subject text,
    attribute text,
    slot text,
    speaker text,
    confidence double precision,
    superseded_by uuid,
    appended boolean NOT NULL,
    replaced_by uuid,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    replaced_at timestamp with time zone NOT NULL,
    pinned boolean NOT NULL,
    edited_at timestamp with time zone,
    temporary boolean DEFAULT false NOT NULL,
    cardinality text,
    CONSTRAINT pk_past_states PRIMARY KEY (id),
    CONSTRAINT fk_past_states_memory_id FOREIGN KEY (memory_id) REFERENCES memories(id) ON DELETE CASCADE
);

CREATE INDEX ix_past_states_agent ON past_states USING btree (project_id, agent_id, replaced_at) WHERE (agent_id IS NOT NULL);

CREATE INDEX ix_past_states_app ON past_states USING btree (project_id, app_id, replaced_at) WHERE (app_id IS NOT NULL);

CREATE INDEX ix_past_states_feed ON past_states USING btree (project_id, replaced_at);

CREATE INDEX ix_past_states_lane ON past_states USING btree (lane_id, replaced_at);

CREATE INDEX ix_past_states_memory ON past_states USING btree (memory_id, replaced_at);

CREATE INDEX ix_past_states_run ON past_states USING btree (project_id, run_id, replaced_at) WHERE (run_id IS NOT NULL);

CREATE INDEX ix_past_states_slot ON past_states USING btree (lane_id, slot) WHERE (slot IS NOT NULL);

CREATE INDEX ix_past_states_user ON past_states USING btree (project_id, user_id, replaced_at);

CREATE TABLE private_runs (
    project_id uuid NOT NULL,
    run_id text,
    privacy text NOT NULL,
    erasure_id uuid NOT NULL,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    digest bytea NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT ck_private_runs_ended CHECK (((privacy = 'ended'::text) = (ended_at IS NOT NULL))),
    CONSTRAINT ck_private_runs_privacy CHECK ((privacy = ANY (ARRAY['temporary'::text, 'incognito'::text, 'ended'::text]))),
    CONSTRAINT ck_private_runs_run_id CHECK (((privacy = 'temporary'::text) = (run_id IS NOT NULL))),
    CONSTRAINT pk_private_runs PRIMARY KEY (project_id, digest)
);

CREATE INDEX ix_private_runs_ended ON private_runs USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX ix_private_runs_expires ON private_runs USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX ix_private_runs_run ON private_runs USING btree (project_id, run_id) WHERE (run_id IS NOT NULL);

CREATE TABLE profile_fields (
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    project_id uuid NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    value jsonb NOT NULL,
    memory_ids uuid[] NOT NULL,
    event_id uuid NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL,
    replaced_at timestamp with time zone,
    CONSTRAINT pk_profile_fields PRIMARY KEY (id)
);

CREATE INDEX ix_profile_fields_memories ON profile_fields USING gin (memory_ids);

CREATE INDEX ix_profile_fields_replaced ON profile_fields USING btree (replaced_at) WHERE (replaced_at IS NOT NULL);

CREATE INDEX ix_profile_fields_user ON profile_fields USING btree (project_id, user_id, replaced_at);

CREATE TABLE profile_jobs (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    operation text NOT NULL,
    event_ids uuid[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_profile_jobs PRIMARY KEY (id)
);

CREATE INDEX ix_profile_jobs_created_at ON profile_jobs USING btree (created_at);

CREATE INDEX ix_profile_jobs_project_id ON profile_jobs USING btree (project_id);

CREATE TABLE profiles (
    project_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    changes bigint DEFAULT '1'::bigint NOT NULL,
    read_changes bigint DEFAULT '0'::bigint NOT NULL,
    changed_in bigint DEFAULT '0'::bigint NOT NULL,
    due_at timestamp with time zone,
    event_id uuid,
    generations integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone,
    CONSTRAINT pk_profiles PRIMARY KEY (project_id, user_id)
);

CREATE INDEX ix_profiles_due ON profiles USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE TABLE projects (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    custom_instructions text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    agent_custom_instructions text,
    includes text,
    excludes text,
    custom_categories jsonb,
    description text,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    mode text,
    budget jsonb,
    curator jsonb,
    gather jsonb,
    graph_types jsonb,
    enable_graph boolean,
    tamper_evidence boolean,
    sealed_until timestamp with time zone,
    deleting_at timestamp with time zone,
    custom_attributes jsonb,
    profile_settings jsonb,
    CONSTRAINT pk_projects PRIMARY KEY (id),
    CONSTRAINT fk_projects_organization_id FOREIGN KEY (organization_id) REFERENCES organizations(id)
);

CREATE INDEX ix_projects_curator ON projects USING btree (id) WHERE (curator IS NOT NULL);

CREATE INDEX ix_projects_organization_id ON projects USING btree (organization_id);

CREATE INDEX ix_projects_origins ON projects USING gin (((settings -> 'allowed_origins'::text))) WHERE (settings ? 'allowed_origins'::text);

CREATE TABLE api_keys (
    digest bytea NOT NULL,
    project_id uuid NOT NULL,
    prefix text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    revoked_at timestamp with time zone,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    scope text NOT NULL,
    member text,
    expires_at timestamp with time zone,
    created_by uuid,
    CONSTRAINT ck_api_keys_scope CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text]))),
    CONSTRAINT pk_api_keys PRIMARY KEY (digest),
    CONSTRAINT uq_api_keys_id UNIQUE (id),
    CONSTRAINT fk_api_keys_project_id FOREIGN KEY (project_id) REFERENCES projects(id)
);

CREATE INDEX ix_api_keys_created_by ON api_keys USING btree (created_by);

CREATE INDEX ix_api_keys_project_id ON api_keys USING btree (project_id);

CREATE TABLE console_sessions (
    digest bytea NOT NULL,
    key_id uuid NOT NULL,
    link boolean NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT pk_console_sessions PRIMARY KEY (digest),
    CONSTRAINT fk_console_sessions_key_id FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE
);

CREATE INDEX ix_console_sessions_expires_at ON console_sessions USING btree (expires_at);

CREATE INDEX ix_console_sessions_key_id ON console_sessions USING btree (key_id);

CREATE TABLE members (
    project_id uuid NOT NULL,
    email text NOT NULL,
    role text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_members_role CHECK ((role = ANY (ARRAY['READER'::text, 'OWNER'::text]))),
    CONSTRAINT pk_members PRIMARY KEY (project_id, email),
    CONSTRAINT fk_members_project_id FOREIGN KEY (project_id) REFERENCES projects(id)
);

CREATE TABLE queue_samples (
    project_id uuid NOT NULL,
    minute timestamp with time zone NOT NULL,
    accepted bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    searches bigint NOT NULL,
    memories bigint NOT NULL,
    pending integer NOT NULL,
    running integer NOT NULL,
    ready_s double precision NOT NULL,
    waiting_s double precision NOT NULL,
    CONSTRAINT pk_queue_samples PRIMARY KEY (project_id, minute)
);

CREATE INDEX ix_queue_samples_minute ON queue_samples USING btree (minute);

CREATE TABLE rebuilt (
    memory_id uuid NOT NULL,
    version integer NOT NULL,
    embedding bytea,
    CONSTRAINT pk_rebuilt PRIMARY KEY (memory_id)
);

CREATE TABLE receipts (
    event_id uuid NOT NULL,
    ordinal smallint NOT NULL,
    outcome text NOT NULL,
    memory_id uuid,
    text text NOT NULL,
    previous_text text,
    reason text NOT NULL,
    message_ordinal smallint NOT NULL,
    suggestion_id uuid,
    conflict_id uuid,
    adopted_at timestamp with time zone,
    CONSTRAINT pk_receipts PRIMARY KEY (event_id, ordinal)
);

CREATE TABLE relations (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    source_id uuid NOT NULL,
    relation text NOT NULL,
    destination_id uuid NOT NULL,
    event_id uuid NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_to timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expired_at timestamp with time zone,
    ended_by uuid,
    message_ordinal smallint,
    memory_id uuid,
    CONSTRAINT pk_relations PRIMARY KEY (id),
    CONSTRAINT fk_relations_destination_id FOREIGN KEY (destination_id) REFERENCES entities(id),
    CONSTRAINT fk_relations_source_id FOREIGN KEY (source_id) REFERENCES entities(id)
);

CREATE INDEX ix_relations_destination ON relations USING btree (destination_id);

CREATE INDEX ix_relations_ended ON relations USING btree (ended_by) WHERE (ended_by IS NOT NULL);

CREATE INDEX ix_relations_event ON relations USING btree (event_id);

CREATE INDEX ix_relations_feed ON relations USING btree (project_id, valid_from DESC, id);

CREATE INDEX ix_relations_lane ON relations USING btree (lane_id);

CREATE INDEX ix_relations_memory ON relations USING btree (memory_id) WHERE (memory_id IS NOT NULL);

CREATE INDEX ix_relations_names ON relations USING btree (project_id, relation, lane_id);

CREATE INDEX ix_relations_source ON relations USING btree (source_id);

CREATE UNIQUE INDEX uq_relations_current ON relations USING btree (lane_id, source_id, relation, destination_id) WHERE (expired_at IS NULL);

CREATE TABLE saved_views (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    project_id uuid NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    query jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_saved_views PRIMARY KEY (id),
    CONSTRAINT fk_saved_views_project_id FOREIGN KEY (project_id) REFERENCES projects(id)
);

CREATE INDEX ix_saved_views_project_id ON saved_views USING btree (project_id);

CREATE TABLE seal_buckets (
    project_id uuid NOT NULL,
    bucket smallint NOT NULL,
    lanes bigint NOT NULL,
    counter bigint NOT NULL,
    key_id text NOT NULL,
    root bytea NOT NULL,
    CONSTRAINT pk_seal_buckets PRIMARY KEY (project_id, bucket)
);

CREATE TABLE seal_checkpoints (
    project_id uuid NOT NULL,
    number bigint NOT NULL,
    counter bigint NOT NULL,
    lanes bigint NOT NULL,
    sealed_until timestamp with time zone,
    root bytea NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_seal_checkpoints PRIMARY KEY (project_id, number)
);

CREATE TABLE seal_heads (
    lane_id uuid NOT NULL,
    project_id uuid NOT NULL,
    number bigint DEFAULT '0'::bigint NOT NULL,
    link bytea DEFAULT '\x'::bytea NOT NULL,
    signature bytea DEFAULT '\x'::bytea NOT NULL,
    reopened boolean DEFAULT true NOT NULL,
    sealed_at timestamp with time zone,
    key_id text DEFAULT ''::text NOT NULL,
    CONSTRAINT ck_seal_heads_format CHECK (((key_id = ''::text) OR (octet_length(signature) = 33))),
    CONSTRAINT pk_seal_heads PRIMARY KEY (lane_id)
);

CREATE INDEX ix_seal_heads_project ON seal_heads USING btree (project_id, lane_id);

CREATE TABLE seal_projects (
    project_id uuid NOT NULL,
    state text NOT NULL,
    since timestamp with time zone,
    counter bigint DEFAULT '0'::bigint NOT NULL,
    lanes bigint DEFAULT '0'::bigint NOT NULL,
    sealed_until timestamp with time zone,
    digest bytea DEFAULT '\x'::bytea NOT NULL,
    checkpoints bigint DEFAULT '0'::bigint NOT NULL,
    checkpoint_at timestamp with time zone,
    sealed_at timestamp with time zone,
    key_id text DEFAULT ''::text NOT NULL,
    signature bytea DEFAULT '\x'::bytea NOT NULL,
    rotated_to text DEFAULT ''::text NOT NULL,
    CONSTRAINT ck_seal_projects_state CHECK ((state = ANY (ARRAY['adopting'::text, 'starting'::text, 'filling'::text, 'complete'::text, 'off'::text]))),
    CONSTRAINT pk_seal_projects PRIMARY KEY (project_id)
);

CREATE TABLE seal_queue (
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id uuid NOT NULL,
    kind text NOT NULL,
    lane_id uuid,
    row_id uuid NOT NULL,
    row_no bigint DEFAULT '0'::bigint NOT NULL,
    covers text,
    key_id text,
    signature bytea,
    queued_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_seal_queue PRIMARY KEY (id)
);

CREATE INDEX ix_seal_queue_due ON seal_queue USING btree (project_id, due_at);

CREATE INDEX ix_seal_queue_entries ON seal_queue USING btree (lane_id) WHERE (kind = ANY (ARRAY['erasure'::text, 'replay'::text]));

CREATE INDEX ix_seal_queue_lanes ON seal_queue USING btree (project_id) WHERE (kind = 'lane'::text);

CREATE INDEX ix_seal_queue_oldest ON seal_queue USING btree (project_id, queued_at);

CREATE TABLE seals (
    lane_id uuid NOT NULL,
    number bigint NOT NULL,
    project_id uuid NOT NULL,
    kind text NOT NULL,
    row_id uuid NOT NULL,
    row_no integer NOT NULL,
    salt bytea,
    digest bytea NOT NULL,
    link bytea NOT NULL,
    erased_by uuid,
    sealed_at timestamp with time zone DEFAULT now() NOT NULL,
    covers text,
    CONSTRAINT pk_seals PRIMARY KEY (lane_id, number)
);

CREATE INDEX ix_seals_entries ON seals USING btree (lane_id) WHERE (kind = ANY (ARRAY['erasure'::text, 'replay'::text]));

CREATE INDEX ix_seals_project ON seals USING btree (project_id);

CREATE INDEX ix_seals_row ON seals USING btree (row_id, kind, row_no);

CREATE TABLE shadows (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    custom_instructions text,
    llm_model text,
    embedder_model text,
    recorded boolean DEFAULT false NOT NULL,
    copied_seq bigint DEFAULT '0'::bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    switched_at timestamp with time zone,
    CONSTRAINT pk_shadows PRIMARY KEY (id)
);

CREATE INDEX ix_shadows_project ON shadows USING btree (project_id, created_at);

CREATE TABLE stage_runs (
    batch_id uuid NOT NULL,
    stage text NOT NULL,
    output jsonb,
    model text DEFAULT ''::text NOT NULL,
    calls integer DEFAULT 0 NOT NULL,
    prompt_tokens integer DEFAULT 0 NOT NULL,
    completion_tokens integer DEFAULT 0 NOT NULL,
    cost_usd double precision,
    ms double precision NOT NULL,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    lane_id uuid NOT NULL,
    prompt text DEFAULT ''::text NOT NULL,
    CONSTRAINT pk_stage_runs PRIMARY KEY (batch_id, stage)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_stage_runs_kept ON stage_runs USING btree (finished_at) WHERE (output IS NOT NULL);

CREATE INDEX ix_stage_runs_lane ON stage_runs USING btree (lane_id);

CREATE TABLE suggestions (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'OPEN'::text NOT NULL,
    origin text NOT NULL,
    event_id uuid,
    fact_text text,
    targets jsonb NOT NULL,
    proposed_text text,
    reason text NOT NULL,
    content_hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    decided_at timestamp with time zone,
    decided_by text,
    decision_event_id uuid,
    run_id uuid,
    CONSTRAINT ck_suggestions_kind CHECK ((kind = ANY (ARRAY['UPDATE'::text, 'DELETE'::text, 'COMBINE'::text, 'RESOLVE'::text]))),
    CONSTRAINT ck_suggestions_state CHECK ((state = ANY (ARRAY['OPEN'::text, 'ACCEPTED'::text, 'REJECTED'::text, 'DISMISSED'::text, 'INVALID'::text]))),
    CONSTRAINT pk_suggestions PRIMARY KEY (id),
    CONSTRAINT uq_suggestions_lane_id_content_hash UNIQUE (lane_id, content_hash)
);

CREATE INDEX ix_suggestions_event ON suggestions USING btree (event_id) WHERE (state = 'OPEN'::text);

CREATE INDEX ix_suggestions_project ON suggestions USING btree (project_id, created_at DESC, id);

CREATE INDEX ix_suggestions_run ON suggestions USING btree (run_id) WHERE (run_id IS NOT NULL);

CREATE INDEX ix_suggestions_state ON suggestions USING btree (project_id, state, created_at DESC, id);

CREATE INDEX ix_suggestions_targets ON suggestions USING gin (targets jsonb_path_ops) WHERE (state = 'OPEN'::text);

CREATE TABLE summaries (
    lane_id uuid NOT NULL,
    version integer NOT NULL,
    project_id uuid NOT NULL,
    text text NOT NULL,
    after_seq bigint NOT NULL,
    until_seq bigint NOT NULL,
    messages integer NOT NULL,
    model text NOT NULL,
    prompt text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_summaries PRIMARY KEY (lane_id, version)
);

CREATE INDEX ix_summaries_project_id ON summaries USING btree (project_id);

CREATE TABLE summary_states (
    lane_id uuid NOT NULL,
    project_id uuid NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    messages integer DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT '0'::bigint NOT NULL,
    tries smallint DEFAULT '0'::smallint NOT NULL,
    reason text,
    due_at timestamp with time zone,
    claimed_until timestamp with time zone,
    CONSTRAINT pk_summary_states PRIMARY KEY (lane_id)
);

CREATE INDEX ix_summary_states_due ON summary_states USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_summary_states_project_id ON summary_states USING btree (project_id);

CREATE TABLE term_cuts (
    name text NOT NULL,
    cut smallint NOT NULL,
    "position" jsonb,
    CONSTRAINT pk_term_cuts PRIMARY KEY (name)
);

CREATE TABLE turn_vectors (
    event_id uuid NOT NULL,
    ordinal smallint NOT NULL,
    lane_id uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    embedding bytea,
    embedder text,
    version integer DEFAULT 1 NOT NULL,
    projected_version integer DEFAULT 0 NOT NULL,
    owed boolean GENERATED ALWAYS AS ((projected_version <> version)) STORED,
    accepted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pk_turn_vectors PRIMARY KEY (event_id, ordinal),
    CONSTRAINT uq_turn_vectors_id UNIQUE (id)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_turn_vectors_owed ON turn_vectors USING btree (lane_id, accepted_at) WHERE owed;

CREATE INDEX ix_turn_vectors_owed_age ON turn_vectors USING btree (accepted_at) WHERE owed;

CREATE INDEX ix_turn_vectors_owed_embedder ON turn_vectors USING btree (embedder) WHERE owed;

CREATE TABLE usage_daily (
    project_id uuid NOT NULL,
    user_id text NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    part smallint NOT NULL,
    calls bigint DEFAULT '0'::bigint NOT NULL,
    prompt_tokens bigint DEFAULT '0'::bigint NOT NULL,
    completion_tokens bigint DEFAULT '0'::bigint NOT NULL,
    cost_nano_usd bigint,
    CONSTRAINT pk_usage_daily PRIMARY KEY (project_id, user_id, day, model, part)
);

CREATE INDEX ix_usage_daily_users ON usage_daily USING btree (day) WHERE (user_id <> ''::text);

CREATE TABLE user_tokens (
    digest bytea NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    key_id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id text NOT NULL,
    rights text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT pk_user_tokens PRIMARY KEY (digest),
    CONSTRAINT uq_user_tokens_id UNIQUE (id),
    CONSTRAINT fk_user_tokens_key_id FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
    CONSTRAINT fk_user_tokens_project_id FOREIGN KEY (project_id) REFERENCES projects(id)
);

CREATE INDEX ix_user_tokens_expires_at ON user_tokens USING btree (expires_at);

CREATE INDEX ix_user_tokens_key_id ON user_tokens USING btree (key_id);

CREATE INDEX ix_user_tokens_user ON user_tokens USING btree (project_id, user_id);

CREATE TABLE vector_collections (
    name text NOT NULL,
    records bigint DEFAULT '0'::bigint NOT NULL,
    CONSTRAINT pk_vector_collections PRIMARY KEY (name)
);

CREATE TABLE vector_indexes (
    name text NOT NULL,
    embedder text NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_vector_indexes_state CHECK ((state = ANY (ARRAY['BUILDING'::text, 'WHOLE'::text, 'LIVE'::text]))),
    CONSTRAINT pk_vector_indexes PRIMARY KEY (name)
);

CREATE UNIQUE INDEX uq_vector_indexes_live ON vector_indexes USING btree (state) WHERE (state = 'LIVE'::text);

CREATE TABLE webhooks (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    event_types text[] NOT NULL,
    secret text NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    dead_in_a_row smallint DEFAULT '0'::smallint NOT NULL,
    disabled_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    silent_tries smallint DEFAULT '0'::smallint,
    CONSTRAINT pk_webhooks PRIMARY KEY (id)
);

CREATE INDEX ix_webhooks_project ON webhooks USING btree (project_id, created_at);

CREATE TABLE webhook_deliveries (
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    project_id uuid NOT NULL,
    lane_id uuid NOT NULL,
    event_type text NOT NULL,
    body text NOT NULL,
    state text DEFAULT 'PENDING'::text NOT NULL,
    attempts smallint DEFAULT '0'::smallint NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    status_code smallint,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT ck_webhook_deliveries_due CHECK (((state = 'PENDING'::text) = (due_at IS NOT NULL))),
    CONSTRAINT ck_webhook_deliveries_state CHECK ((state = ANY (ARRAY['PENDING'::text, 'DELIVERED'::text, 'DEAD'::text]))),
    CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id),
    CONSTRAINT fk_webhook_deliveries_webhook_id FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02');

CREATE INDEX ix_webhook_deliveries_due ON webhook_deliveries USING btree (webhook_id, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_webhook_deliveries_ended ON webhook_deliveries USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX ix_webhook_deliveries_log ON webhook_deliveries USING btree (webhook_id, created_at);

CREATE TRIGGER book_changed AFTER UPDATE ON memories FOR EACH ROW WHEN (((((((old.state IS DISTINCT FROM new.state) OR (old.project_id IS DISTINCT FROM new.project_id)) OR (old.user_id IS DISTINCT FROM new.user_id)) OR (old.agent_id IS DISTINCT FROM new.agent_id)) OR (old.app_id IS DISTINCT FROM new.app_id)) OR (old.run_id IS DISTINCT FROM new.run_id))) EXECUTE FUNCTION book_memory();

CREATE TRIGGER book_created AFTER INSERT OR DELETE ON lanes FOR EACH ROW EXECUTE FUNCTION book_numbers();

CREATE TRIGGER book_created AFTER INSERT OR DELETE ON memories FOR EACH ROW EXECUTE FUNCTION book_memory();

CREATE TRIGGER book_deleted AFTER DELETE ON events REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION book_events_deleted();

CREATE TRIGGER book_edited AFTER UPDATE ON memories FOR EACH ROW WHEN (((old.state = 'ACTIVE'::text) AND (new.state = 'ACTIVE'::text) AND (old.updated_at <> new.updated_at))) EXECUTE FUNCTION book_edit();

CREATE TRIGGER book_inserted AFTER INSERT ON events REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION book_events_inserted();

CREATE TRIGGER book_numbered AFTER UPDATE ON lanes FOR EACH ROW WHEN (((old.accepted_seq <> new.accepted_seq) OR (old.project_id <> new.project_id))) EXECUTE FUNCTION book_numbers();

CREATE TRIGGER book_updated AFTER UPDATE ON events REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION book_events_updated();

CREATE TRIGGER owners_deleted AFTER DELETE ON books REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION count_owners_deleted();

CREATE TRIGGER owners_inserted AFTER INSERT ON books REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION count_owners_inserted();

CREATE TRIGGER owners_updated AFTER UPDATE ON books REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION count_owners_updated();

CREATE TRIGGER past_state_kept BEFORE UPDATE ON memories FOR EACH ROW WHEN ((((((old.version IS DISTINCT FROM new.version) OR (old.project_id IS DISTINCT FROM new.project_id)) OR (old.said_at IS DISTINCT FROM new.said_at)) OR (old.superseded_by IS DISTINCT FROM new.superseded_by)) OR (old.replaced_by IS DISTINCT FROM new.replaced_by))) EXECUTE FUNCTION keep_past_state();

CREATE TRIGGER private_run_entered BEFORE INSERT ON lanes FOR EACH ROW WHEN ((new.run_id IS NOT NULL)) EXECUTE FUNCTION enter_private_run();

CREATE TRIGGER profile_deleted AFTER DELETE ON memories FOR EACH ROW WHEN (((old.user_id IS NOT NULL) AND (NOT old.temporary))) EXECUTE FUNCTION mark_profile();

CREATE TRIGGER profile_inserted AFTER INSERT ON memories FOR EACH ROW WHEN (((new.user_id IS NOT NULL) AND (new.state = 'ACTIVE'::text) AND (NOT new.temporary))) EXECUTE FUNCTION mark_profile();

CREATE TRIGGER profile_updated AFTER UPDATE ON memories FOR EACH ROW WHEN (((new.user_id IS NOT NULL) AND (NOT new.temporary) AND (((((old.text IS DISTINCT FROM new.text) OR (old.state IS DISTINCT FROM new.state)) OR (old.project_id IS DISTINCT FROM new.project_id)) OR (old.superseded_by IS DISTINCT FROM new.superseded_by)) OR (old.expiration_date IS DISTINCT FROM new.expiration_date)))) EXECUTE FUNCTION mark_profile();

CREATE TRIGGER queued_deleted AFTER DELETE ON entities REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION queue_entities_deleted();

CREATE TRIGGER queued_deleted AFTER DELETE ON relations REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION queue_relations_deleted();

CREATE TRIGGER queued_inserted AFTER INSERT ON entities REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION queue_entities_inserted();

CREATE TRIGGER queued_inserted AFTER INSERT ON relations REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION queue_relations_inserted();

CREATE TRIGGER queued_updated AFTER UPDATE ON entities REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION queue_entities_updated();

CREATE TRIGGER queued_updated AFTER UPDATE ON relations REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION queue_relations_updated();

CREATE TRIGGER said_at_copied BEFORE INSERT ON memories FOR EACH ROW WHEN ((new.said_at IS NULL)) EXECUTE FUNCTION copy_valid_from();

CREATE TRIGGER seal_adopted AFTER UPDATE OF project_id ON memory_history FOR EACH ROW EXECUTE FUNCTION queue_history_to_seal();

CREATE TRIGGER seal_adopted AFTER INSERT ON receipts FOR EACH ROW WHEN ((new.adopted_at IS NOT NULL)) EXECUTE FUNCTION queue_receipt_to_seal();

CREATE TRIGGER seal_ended AFTER UPDATE OF completed_at ON events FOR EACH ROW WHEN (((new.completed_at IS NOT NULL) AND (new.erased_at IS NULL) AND (new.completed_at IS DISTINCT FROM old.completed_at))) EXECUTE FUNCTION queue_event_to_seal();

CREATE TRIGGER seal_inserted AFTER INSERT ON events FOR EACH ROW WHEN (((new.completed_at IS NOT NULL) AND (new.erased_at IS NULL))) EXECUTE FUNCTION queue_event_to_seal();

CREATE TRIGGER seal_inserted AFTER INSERT ON memory_history FOR EACH ROW EXECUTE FUNCTION queue_history_to_seal();

CREATE TRIGGER share_run AFTER INSERT ON failed_runs FOR EACH ROW WHEN (((new.calls > 0) AND (new.code <> 'OUTDATED'::text))) EXECUTE FUNCTION share_run();

CREATE TRIGGER share_run AFTER INSERT ON stage_runs FOR EACH ROW WHEN ((new.calls > 0)) EXECUTE FUNCTION share_run();

CREATE TRIGGER temporary_marked BEFORE INSERT OR UPDATE OF lane_id ON memories FOR EACH ROW WHEN ((new.run_id IS NOT NULL)) EXECUTE FUNCTION mark_temporary();

CREATE TRIGGER temporary_marked BEFORE INSERT OR UPDATE OF lane_id ON past_states FOR EACH ROW WHEN ((new.run_id IS NOT NULL)) EXECUTE FUNCTION mark_temporary();

-- Rows of a large project: `lanes` scopes, each with 5 memories and `events` events. Each statement ends
-- with a line that has only `;`. The ids are hashes of numbers, so statements need no joins. The app
-- "old" has more scopes than are read one by one, none of them among the newest of the project.
INSERT INTO lanes (id, project_id, user_id, agent_id, app_id, run_id, accepted_seq, settled_seq,
    state, created_at, accepted_at)
SELECT md5('l' || n)::uuid, '{project}', 'u' || n, CASE WHEN n % 3 = 0 THEN 'helper' END,
    CASE WHEN n % 10 = 0 THEN 'web' WHEN n < {lanes} / 9 THEN 'old' END,
    CASE WHEN n % 4 = 0 THEN 'r' || n END, {events}, {events}, 'IDLE',
    now() - interval '3 hours' - ({lanes} - n) * interval '10 s',
    now() - interval '1 hour' - ({lanes} - n) * interval '1 s'
FROM generate_series(1, {lanes}) n
;
INSERT INTO events (id, project_id, lane_id, seq, status, options, tokens, batch_id, mode,
    failure_code, graph_status, created_at, started_at, completed_at)
SELECT md5('e' || n)::uuid, '{project}', md5('l' || (n - 1) % {lanes} + 1)::uuid,
    (n - 1) / {lanes} + 1, CASE WHEN n % 500 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
    '{{"infer": true, "metadata": {{}}, "immutable": false}}', 20, md5('b' || n)::uuid,
    'consolidate', CASE WHEN n % 500 = 0 THEN 'LLM_BAD_OUTPUT' END,
    CASE WHEN n % 700 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, at, at, at + interval '2 s'
FROM generate_series(1, {lanes} * {events}) n,
    LATERAL (SELECT now() - interval '1 hour' - ({lanes} * {events} - n) * interval '1 s' AS at) t
;
INSERT INTO messages (lane_id, seq, ordinal, role, content, said_at, terms)
SELECT md5('l' || (n - 1) % {lanes} + 1)::uuid, (n - 1) / {lanes} + 1, 0, 'user',
    'I like dish number ' || n || ' very much',
    now() - interval '1 hour' - ({lanes} * {events} - n) * interval '1 s',
    ARRAY['like', 'dish', 'number', n::text]
FROM generate_series(1, {lanes} * {events}) n
;
INSERT INTO turn_vectors (event_id, ordinal, lane_id, embedding, embedder, projected_version,
    accepted_at)
SELECT md5('e' || n)::uuid, 0, md5('l' || (n - 1) % {lanes} + 1)::uuid, '', '{embedder}', 1, now()
FROM generate_series(1, {lanes} * {events}) n
;
INSERT INTO stage_runs (batch_id, stage, lane_id, output, ms)
SELECT md5('b' || n)::uuid, 'extract', md5('l' || (n - 1) % {lanes} + 1)::uuid, NULL, 1
FROM generate_series(1, {lanes} * {events}) n
;
INSERT INTO event_costs (event_id, calls, prompt_tokens, completion_tokens)
SELECT md5('e' || n)::uuid, 1, 100, 20 FROM generate_series(1, {lanes} * {events}) n
;
INSERT INTO memories (id, project_id, lane_id, user_id, agent_id, app_id, run_id, text, text_hash,
    terms, metadata, categories, attributed_to, embedding, embedder, projected_version, event_id,
    message_ordinal, said_at, valid_from, subject, attribute, slot, created_at, updated_at,
    stored_at, state)
SELECT md5('m' || n)::uuid, '{project}', md5('l' || lane)::uuid, 'u' || lane,
    CASE WHEN lane % 3 = 0 THEN 'helper' END,
    CASE WHEN lane % 10 = 0 THEN 'web' WHEN lane < {lanes} / 9 THEN 'old' END,
    CASE WHEN lane % 4 = 0 THEN 'r' || lane END, 'User likes dish number ' || n,
    decode(md5('t' || n), 'hex'), ARRAY['user', 'like', 'dish', 'number', n::text],
    CASE WHEN n % 1000 = 0 THEN '{{"trip": "lisbon"}}'::jsonb ELSE '{{}}' END,
    CASE WHEN n % 50 = 0 THEN ARRAY['food'] ELSE '{{}}' END, 'user',
    -- Two floats near 0.1 and -0.1, again and again.
    decode(repeat(left(md5('x' || n), 6) || '3d' || right(md5('x' || n), 6) || 'bd',
        {vector_bytes} / 8), 'hex'), '{embedder}', 1,
    md5('e' || n)::uuid, 0, at, at, CASE WHEN n % 5 = 0 THEN 'user' END,
    CASE WHEN n % 5 = 0 THEN 'residence' END, CASE WHEN n % 5 = 0 THEN 'user · residence' END,
    at, at, at, CASE WHEN n % 25 = 0 THEN 'RETIRED' ELSE 'ACTIVE' END
FROM generate_series(1, {lanes} * 5) n,
    LATERAL (SELECT (n - 1) % {lanes} + 1 AS lane, now() - n * interval '1 s' AS at) t
;
INSERT INTO memory_history (memory_id, version, project_id, event, new_text, reason, event_id,
    message_ordinal, said_at, valid_from, created_at)
SELECT md5('m' || n)::uuid, 1, '{project}', 'ADD', 'User likes dish number ' || n, 'not known yet',
    md5('e' || n)::uuid, 0, at, at, at
FROM generate_series(1, {lanes} * 5) n, LATERAL (SELECT now() - n * interval '1 s' AS at) t
;
INSERT INTO receipts (event_id, ordinal, outcome, memory_id, text, reason, message_ordinal)
SELECT md5('e' || n)::uuid, 0, 'ADD', md5('m' || n)::uuid, 'User likes dish number ' || n, 'new', 0
FROM generate_series(1, {lanes} * 5) n
;
INSERT INTO past_states (memory_id, project_id, lane_id, user_id, text, terms, metadata, categories,
    attributed_to, state, immutable, embedding, embedder, version, said_at, valid_from, kind,
    memory_type, appended, pinned, created_at, updated_at, stored_at, replaced_at)
SELECT md5('m' || n)::uuid, '{project}', md5('l' || n)::uuid, 'u' || n, 'User likes dish', '{{}}',
    '{{}}', '{{}}', 'user', 'ACTIVE', false, '', '', 0, at, at, 'other', 'semantic', false, false, at,
    at, at - interval '1 day', at
FROM generate_series(1, {lanes}) n, LATERAL (SELECT now() - n * interval '1 s' AS at) t
;
INSERT INTO entities (id, project_id, lane_id, name, name_key, kind, plain_name)
SELECT md5('n' || n)::uuid, '{project}', md5('l' || (n - 1) % {lanes} + 1)::uuid, name, name,
    'thing', name
FROM generate_series(1, {lanes} * 2) n,
    LATERAL (SELECT CASE WHEN n <= {lanes} THEN 'user' ELSE 'dish ' || n END AS name) t
;
INSERT INTO relations (id, project_id, lane_id, source_id, relation, destination_id, event_id,
    memory_id, valid_from)
SELECT md5('q' || n)::uuid, '{project}', md5('l' || n)::uuid, md5('n' || n)::uuid, 'likes',
    md5('n' || n + {lanes})::uuid, md5('e' || n)::uuid, md5('m' || n)::uuid, now()
FROM generate_series(1, {lanes}) n
;
INSERT INTO graph_receipts (event_id, ordinal, outcome, relation_id, memory_id, source, relation,
    destination, reason, message_ordinal)
SELECT md5('e' || n)::uuid, 0, 'ADD', md5('q' || n)::uuid, md5('m' || n)::uuid, 'user', 'likes',
    'dish', 'new', 0
FROM generate_series(1, {lanes}) n
;
INSERT INTO books (project_id, kind, owner, amount, since, last_at)
SELECT '{project}'::uuid, kind, owner, 5 * number, now(), now()
FROM generate_series(1, {lanes}) n, LATERAL (
    VALUES ('user', 'u' || n, 1, 1), ('run', 'r' || n, 4, 1),
           ('agent', 'helper', {lanes}, {lanes} / 3), ('app', 'web', {lanes}, {lanes} / 10)
    ) o (kind, owner, every, number)
WHERE n % every = 0
UNION ALL
SELECT '{project}', kind, '', amount, NULL, NULL
FROM (VALUES ('SUCCEEDED', {lanes} * {events}), ('ADD', {lanes} * {events}), ('NUMBER', {lanes} * {events}),
             ('MEMORY', {lanes} * 5)) b (kind, amount)
;
INSERT INTO idempotency_keys (project_id, key, digest, event_id)
SELECT '{project}', 'k' || n, '\x00', md5('e' || n)::uuid FROM generate_series(1, {lanes}) n
;
INSERT INTO summary_states (lane_id, project_id, version, messages)
SELECT md5('l' || n)::uuid, '{project}', 1, 5 FROM generate_series(1, {lanes}) n
;
INSERT INTO summaries (lane_id, version, project_id, text, after_seq, until_seq, messages, model,
    prompt)
SELECT md5('l' || n)::uuid, 1, '{project}', 'User likes dishes.', 0, 5, 5, 'local/rules', 'x'
FROM generate_series(1, {lanes}) n
;
INSERT INTO memory_accesses (memory_id, project_id, accesses, last_at)
SELECT md5('m' || n)::uuid, '{project}', 1, now() FROM generate_series(1, {lanes}) n
;
INSERT INTO suggestions (id, project_id, lane_id, kind, state, origin, targets, proposed_text,
    reason, content_hash, outdated)
SELECT md5('s' || n)::uuid, '{project}', md5('l' || n)::uuid, 'UPDATE',
    CASE WHEN n % 10 = 0 THEN 'OPEN' ELSE 'REJECTED' END, 'curator',
    jsonb_build_array(jsonb_build_object('memory_id', md5('m' || n)::uuid, 'version',
        CASE WHEN n % 3 = 0 THEN 1 ELSE 2 END)),
    'User likes dish', 'clearer', decode(md5('s' || n), 'hex'), n % 3 <> 0 OR n % 25 = 0
FROM generate_series(1, {lanes} / 2) n
;
INSERT INTO conflicts (id, project_id, lane_id, slot, event_id, created_at, open_until)
SELECT md5('k' || n)::uuid, '{project}', md5('l' || n)::uuid, 'user · residence', md5('e' || n)::uuid,
    now() - n * interval '1 s',
    CASE WHEN n % 90 = 0 AND n % 25 <> 0 THEN 'infinity'::date END
FROM generate_series(1, {lanes} / 2) n
;
INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)
SELECT md5('k' || n)::uuid, md5('m' || mine)::uuid, md5('m' || other)::uuid, md5('l' || n)::uuid,
    CASE WHEN n % 90 = 0 THEN decode(md5('t' || mine), 'hex') ELSE '\x00' END
FROM generate_series(1, {lanes} / 2) n, LATERAL (
    VALUES (n, n + {lanes}), (n + {lanes}, n)) pair (mine, other)
;
INSERT INTO curator_runs (id, project_id, lane_id, origin, state, accepted_seq, max_suggestions,
    max_tokens, created_at, completed_at)
SELECT md5('c' || n)::uuid, '{project}', md5('l' || n)::uuid, 'schedule', 'SUCCEEDED', 1, 1, 1, at, at
FROM generate_series(1, {lanes} / 2) n, LATERAL (SELECT now() - n * interval '1 s' AS at) t
;
INSERT INTO usage_daily (project_id, user_id, day, model, part, calls, prompt_tokens,
    completion_tokens)
SELECT '{project}', user_id, current_date - day, 'local/rules', 0, 1, 100, 20
FROM generate_series(0, 4) day, (
    SELECT '' AS user_id UNION ALL SELECT 'u' || n FROM generate_series(1, {lanes}) n) u
;
INSERT INTO seal_heads (lane_id, project_id, number, link, signature)
SELECT md5('l' || n)::uuid, '{project}', 1, '\x00', '\x00' FROM generate_series(1, {lanes}) n
;
INSERT INTO seals (lane_id, number, project_id, kind, row_id, row_no, salt, digest, link)
SELECT md5('l' || n)::uuid, 1, '{project}', 'event', md5('e' || n)::uuid, 0, '\x00', '\x00', '\x00'
FROM generate_series(1, {lanes}) n
;

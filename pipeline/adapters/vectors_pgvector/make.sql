-- Table of a collection. Each key that searches filter by has a generated column and an index. The
-- indexes of optional ids are partial, to save space.
-- A vector stays in its row if a page has room for it, up to about 1,700 dimensions. By default
-- PostgreSQL stores values apart if a row has 2 kB, and a comparison reads four parts by an index.
CREATE TABLE IF NOT EXISTS {table} (
    id uuid PRIMARY KEY,
    embedding vector({dimensions}) NOT NULL,
    signs bit({bits}) NOT NULL,
    payload jsonb NOT NULL,
    project_id text GENERATED ALWAYS AS (payload ->> 'project_id') STORED,
    lane_id text GENERATED ALWAYS AS (payload ->> 'lane_id') STORED,
    user_id text GENERATED ALWAYS AS (payload ->> 'user_id') STORED,
    agent_id text GENERATED ALWAYS AS (payload ->> 'agent_id') STORED,
    app_id text GENERATED ALWAYS AS (payload ->> 'app_id') STORED,
    run_id text GENERATED ALWAYS AS (payload ->> 'run_id') STORED
) WITH (toast_tuple_target = 8160);
CREATE INDEX IF NOT EXISTS {index}_lane ON {table} (lane_id);
CREATE INDEX IF NOT EXISTS {index}_user ON {table} (project_id, user_id);
CREATE INDEX IF NOT EXISTS {index}_agent ON {table} (project_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS {index}_app ON {table} (project_id, app_id) WHERE app_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS {index}_run ON {table} (project_id, run_id) WHERE run_id IS NOT NULL

-- +goose Up

-- How many attempts there were a day (since 1970, UTC), by outcome ('outcome') and, refused ones, by gate ('gate'). The overview
-- shows them, so they are counted when they are recorded.
CREATE TABLE day_counts (
    kind  TEXT COLLATE "C" NOT NULL,
    day   BIGINT NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (kind, day, name)
);
INSERT INTO day_counts (kind, day, name, count)
SELECT 'outcome', time_us / 86400000000, outcome, COUNT(*) FROM attempts GROUP BY 2, 3;
INSERT INTO day_counts (kind, day, name, count)
SELECT 'gate', refused_us / 86400000000, gate, COUNT(*) FROM attempt_gates WHERE refused_us IS NOT NULL GROUP BY 2, 3;
DROP INDEX attempt_gates_refused;

CREATE INDEX proposals_dry_runs ON proposals (created_us, id) WHERE state = 'dry_run' AND pruned_us IS NULL;
CREATE INDEX pulls_open ON pulls (proposal_id) WHERE state = 'open';

-- Parts of titles and paths, which a search finds without looking at every attempt. It needs the extension pg_trgm, which the owner of a
-- database may create. Where it cannot be had, a search looks at every attempt.
-- +goose StatementBegin
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX attempts_by_text ON attempts USING gin (search gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE NOTICE 'without pg_trgm: %', SQLERRM;
END
$$;
-- +goose StatementEnd

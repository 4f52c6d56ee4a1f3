-- +goose Up

-- What sessions used of their models, for sums; session.Record has the same. Those from before have what they cost, as far as it was
-- recorded.
CREATE TABLE agent_session_usage (
    session            TEXT PRIMARY KEY NOT NULL REFERENCES agent_sessions (id),
    day                TEXT NOT NULL, -- on which it began, in UTC: 2006-01-02
    tier               INTEGER NOT NULL,
    state              TEXT NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_nano_usd      INTEGER NOT NULL,
    cost_source        TEXT NOT NULL -- session.CostSource
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_session_usage_by_day ON agent_session_usage (day, tier);

INSERT INTO agent_session_usage
SELECT id, substr(json_extract(record, '$.started_at'), 1, 10), json_extract(record, '$.tier'), state, 0, 0, 0, 0,
    CAST(round(coalesce(json_extract(record, '$.cost_usd'), 0) * 1000000000) AS INTEGER),
    CASE WHEN coalesce(json_extract(record, '$.cost_usd'), 0) > 0 THEN 'client' ELSE '' END
FROM agent_sessions WHERE state <> 'skipped';

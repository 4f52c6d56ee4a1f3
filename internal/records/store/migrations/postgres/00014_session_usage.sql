-- +goose Up

-- What sessions used of their models, for sums; session.Record has the same. Those from before have what they cost, as far as it was
-- recorded.
CREATE TABLE agent_session_usage (
    session            TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES agent_sessions (id),
    day                TEXT COLLATE "C" NOT NULL, -- on which it began, in UTC: 2006-01-02
    tier               BIGINT NOT NULL,
    state              TEXT COLLATE "C" NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cost_nano_usd      BIGINT NOT NULL,
    cost_source        TEXT COLLATE "C" NOT NULL -- session.CostSource
);
CREATE INDEX agent_session_usage_by_day ON agent_session_usage (day, tier);

-- By patterns: JSON with a NUL, which records may have, cannot be read here. No text in a record can hold them: its quotes are escaped.
INSERT INTO agent_session_usage
SELECT id, substring(record from '"started_at":"([0-9-]{10})'), substring(record from '"tier":([0-9]+)')::BIGINT, state, 0, 0, 0, 0,
    round(coalesce(substring(record from '"cost_usd":([0-9.eE+-]+)')::NUMERIC, 0) * 1000000000)::BIGINT,
    CASE WHEN coalesce(substring(record from '"cost_usd":([0-9.eE+-]+)')::NUMERIC, 0) > 0 THEN 'client' ELSE '' END
FROM agent_sessions WHERE state <> 'skipped';

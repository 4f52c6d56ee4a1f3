-- +goose Up

-- The runs of scripts. A row is there before its script starts, so that none is lost; settled says that the audit has it too.
CREATE TABLE script_runs (
	id         TEXT PRIMARY KEY,
	script     TEXT NOT NULL,
	started_us BIGINT NOT NULL,
	ends_us    BIGINT NOT NULL,
	state      TEXT NOT NULL,
	settled    BIGINT NOT NULL DEFAULT 0,
	record     TEXT NOT NULL
);
CREATE INDEX script_runs_by_script ON script_runs (script, id);
CREATE INDEX script_runs_unsettled ON script_runs (ends_us) WHERE settled = 0;
CREATE INDEX script_runs_by_time ON script_runs (started_us);

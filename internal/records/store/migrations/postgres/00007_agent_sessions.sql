-- +goose Up

-- The agent's session in which a proposal or an attempt was made; '' for none. It is no part of the audit's text.
ALTER TABLE proposals ADD COLUMN session TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN session TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX attempts_by_session ON attempts (session, seq) WHERE session <> '';

CREATE TABLE agent_sessions (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL, -- sorted by time
    state      TEXT COLLATE "C" NOT NULL,
    process    TEXT COLLATE "C" NOT NULL,             -- that runs it (engine.go, presence)
    record     TEXT COLLATE "C" NOT NULL              -- session.Record as JSON
);
CREATE INDEX agent_sessions_running ON agent_sessions (process) WHERE state = 'running';

CREATE TABLE agent_session_events (
    session TEXT COLLATE "C" NOT NULL REFERENCES agent_sessions (id),
    seq     BIGINT NOT NULL,
    time_us BIGINT NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    tool    TEXT COLLATE "C" NOT NULL,
    body    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
);

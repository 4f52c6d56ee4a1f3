-- +goose Up

-- The agent's session in which a proposal or an attempt was made; '' for none. It is no part of the audit's text.
ALTER TABLE proposals ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN session TEXT NOT NULL DEFAULT '';
CREATE INDEX attempts_by_session ON attempts (session, seq) WHERE session <> '';

CREATE TABLE agent_sessions (
    id         TEXT PRIMARY KEY NOT NULL, -- sorted by time
    state      TEXT NOT NULL,
    process    TEXT NOT NULL,             -- that runs it (engine.go, presence)
    record     TEXT NOT NULL              -- session.Record as JSON
) STRICT;
CREATE INDEX agent_sessions_running ON agent_sessions (process) WHERE state = 'running';

CREATE TABLE agent_session_events (
    session TEXT NOT NULL REFERENCES agent_sessions (id),
    seq     INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    tool    TEXT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

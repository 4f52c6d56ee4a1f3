-- +goose Up

-- Agents that are connected to a process. One that a person cut off stays until it has been over for a while: so long its token lets
-- nobody in.
CREATE TABLE agent_connections (
    id         TEXT PRIMARY KEY NOT NULL,
    process    TEXT NOT NULL,   -- that serves it (engine.go, presence)
    session    TEXT NOT NULL,   -- of the agent; '' for none
    credential TEXT NOT NULL,   -- the token's name; '' for the ticket of the session
    tier       INTEGER NOT NULL,
    dry_run    INTEGER NOT NULL,
    read_only  INTEGER NOT NULL,
    way        TEXT NOT NULL,
    peer       TEXT NOT NULL,
    since_us   INTEGER NOT NULL,
    calls      INTEGER NOT NULL, -- under way
    cut_us     INTEGER,          -- when a person cut it off
    cut_by     TEXT NOT NULL DEFAULT '',
    ended_us   INTEGER
) STRICT;
CREATE INDEX agent_connections_cut ON agent_connections (credential, cut_us) WHERE cut_us IS NOT NULL;

-- What kept the agent of a session from our files and processes; '' where it was not recorded.
ALTER TABLE agent_session_usage ADD COLUMN boundary TEXT NOT NULL DEFAULT '';

-- +goose Up

-- Agents that are connected to a process. One that a person cut off stays until it has been over for a while: so long its token lets
-- nobody in.
CREATE TABLE agent_connections (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    process    TEXT COLLATE "C" NOT NULL,   -- that serves it (engine.go, presence)
    session    TEXT COLLATE "C" NOT NULL,   -- of the agent; '' for none
    credential TEXT COLLATE "C" NOT NULL,   -- the token's name; '' for the ticket of the session
    tier       BIGINT NOT NULL,
    dry_run    BIGINT NOT NULL,
    read_only  BIGINT NOT NULL,
    way        TEXT COLLATE "C" NOT NULL,
    peer       TEXT COLLATE "C" NOT NULL,
    since_us   BIGINT NOT NULL,
    calls      BIGINT NOT NULL, -- under way
    cut_us     BIGINT,          -- when a person cut it off
    cut_by     TEXT COLLATE "C" NOT NULL DEFAULT '',
    ended_us   BIGINT
);
CREATE INDEX agent_connections_cut ON agent_connections (credential, cut_us) WHERE cut_us IS NOT NULL;

-- What kept the agent of a session from our files and processes; '' where it was not recorded.
ALTER TABLE agent_session_usage ADD COLUMN boundary TEXT COLLATE "C" NOT NULL DEFAULT '';

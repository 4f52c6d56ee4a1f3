-- +goose Up

-- The process that made the proposal (engine.go, presence); '' for one that was made before this column.
ALTER TABLE proposals ADD COLUMN process TEXT NOT NULL DEFAULT '';
CREATE INDEX proposals_by_pull ON proposals (provider, owner, repo, pr_number, opened_seq);

-- What people are to be told. Numbers are never used again: a sender may settle one long after.
CREATE TABLE notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    event      TEXT NOT NULL,
    payload    BLOB NOT NULL,
    state      TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
    attempts   INTEGER NOT NULL DEFAULT 0, -- how often it was claimed
    created_us INTEGER NOT NULL,
    due_us     INTEGER NOT NULL DEFAULT 0, -- when it may be claimed, if pending
    settled_us INTEGER,                    -- when it was delivered or given up
    error      TEXT NOT NULL DEFAULT ''    -- of the last attempt that failed
) STRICT;
CREATE INDEX notices_pending ON notices (due_us) WHERE state = 'pending';
CREATE INDEX notices_settled ON notices (state, settled_us);

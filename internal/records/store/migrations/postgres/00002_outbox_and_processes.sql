-- +goose Up

-- The process that made the proposal (engine.go, presence); '' for one that was made before this column.
ALTER TABLE proposals ADD COLUMN process TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX proposals_by_pull ON proposals (provider, owner, repo, pr_number, opened_seq);

-- What people are to be told. Numbers are never used again: a sender may settle one long after.
CREATE TABLE notices (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event      TEXT COLLATE "C" NOT NULL,
    payload    BYTEA NOT NULL,
    state      TEXT COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
    attempts   BIGINT NOT NULL DEFAULT 0, -- how often it was claimed
    created_us BIGINT NOT NULL,
    due_us     BIGINT NOT NULL DEFAULT 0, -- when it may be claimed, if pending
    settled_us BIGINT,                    -- when it was delivered or given up
    error      TEXT COLLATE "C" NOT NULL DEFAULT '' -- of the last attempt that failed
);
CREATE INDEX notices_pending ON notices (due_us) WHERE state = 'pending';
CREATE INDEX notices_settled ON notices (state, settled_us);

-- +goose Up

-- The number of the pull request of ours to which the proposal adds a commit; 0 for one that opens its own.
ALTER TABLE proposals ADD COLUMN revises BIGINT NOT NULL DEFAULT 0;

-- Closed pull requests whose cooldown a person has lifted.
CREATE TABLE cooldown_lifts (
    provider  TEXT NOT NULL,
    owner     TEXT NOT NULL,
    repo      TEXT NOT NULL,
    number    BIGINT NOT NULL,
    lifted_us BIGINT NOT NULL, -- it ends what was closed before
    lifted_by TEXT NOT NULL,
    PRIMARY KEY (provider, owner, repo, number)
);

-- +goose Up

-- When we began to remove what the proposal had written; 0: never. That its pull request is closed is then nobody's decision.
ALTER TABLE proposals ADD COLUMN undone_us INTEGER NOT NULL DEFAULT 0;
CREATE INDEX proposals_undone ON proposals (provider, owner, repo, undone_us) WHERE undone_us > 0;

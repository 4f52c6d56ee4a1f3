-- +goose Up

-- 1: we have begun to remove what the proposal had written. That its pull request is closed is then nobody's decision.
ALTER TABLE proposals ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;

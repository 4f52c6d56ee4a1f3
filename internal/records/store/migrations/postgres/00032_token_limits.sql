-- +goose Up

-- An agent's token may be in a dry run, and read-only, by itself: 0 or 1.
ALTER TABLE api_tokens ADD COLUMN dry_run BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_tokens ADD COLUMN read_only BIGINT NOT NULL DEFAULT 0;

-- +goose Up

-- What the pull requests of forges change at one head commit, so that they are asked once. The latest head alone counts.
CREATE TABLE pull_paths (
    provider TEXT NOT NULL,
    repo     TEXT NOT NULL,    -- owner/name, lower case
    number   INTEGER NOT NULL,
    head     TEXT NOT NULL,
    paths    TEXT NOT NULL,    -- a JSON array
    seen_us  INTEGER NOT NULL,
    PRIMARY KEY (provider, repo, number)
) STRICT, WITHOUT ROWID;

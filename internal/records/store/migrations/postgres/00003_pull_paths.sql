-- +goose Up

-- What the pull requests of forges change at one head commit, so that they are asked once. The latest head alone counts.
CREATE TABLE pull_paths (
    provider TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL, -- owner/name, lower case
    number   BIGINT NOT NULL,
    head     TEXT COLLATE "C" NOT NULL,
    paths    TEXT COLLATE "C" NOT NULL, -- a JSON array
    seen_us  BIGINT NOT NULL,
    PRIMARY KEY (provider, repo, number)
);

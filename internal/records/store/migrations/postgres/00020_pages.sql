-- +goose Up

-- What reviews of local pull requests say of lines of files.
CREATE TABLE local_review_comments (
    repo      TEXT COLLATE "C" NOT NULL, -- owner/name
    number    BIGINT NOT NULL,
    review    BIGINT NOT NULL, -- its position in local_reviews
    position  BIGINT NOT NULL,
    path      TEXT COLLATE "C" NOT NULL,
    line      BIGINT NOT NULL,
    before    BIGINT NOT NULL, -- 1: a line of the file as it was before the change
    commit_id TEXT COLLATE "C" NOT NULL,
    body      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number, review, position),
    FOREIGN KEY (repo, number, review) REFERENCES local_reviews (repo, number, position)
);

-- What attempts wanted that were refused, without what may be a secret: an aid for people, and no part of the audit.
CREATE TABLE refused_changes (
    request_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    created_us BIGINT NOT NULL,
    change     TEXT COLLATE "C" NOT NULL -- JSON
);
CREATE INDEX refused_changes_by_time ON refused_changes (created_us);

-- When a person asked, at another process, that a session end; NULL: nobody did. The process that runs it looks again and again.
ALTER TABLE agent_sessions ADD COLUMN stop_asked_us BIGINT;

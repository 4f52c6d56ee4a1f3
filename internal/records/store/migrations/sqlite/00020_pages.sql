-- +goose Up

-- What reviews of local pull requests say of lines of files.
CREATE TABLE local_review_comments (
    repo      TEXT NOT NULL, -- owner/name
    number    INTEGER NOT NULL,
    review    INTEGER NOT NULL, -- its position in local_reviews
    position  INTEGER NOT NULL,
    path      TEXT NOT NULL,
    line      INTEGER NOT NULL,
    before    INTEGER NOT NULL, -- 1: a line of the file as it was before the change
    commit_id TEXT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (repo, number, review, position),
    FOREIGN KEY (repo, number, review) REFERENCES local_reviews (repo, number, position)
) STRICT;

-- What attempts wanted that were refused, without what may be a secret: an aid for people, and no part of the audit.
CREATE TABLE refused_changes (
    request_id TEXT NOT NULL PRIMARY KEY,
    created_us INTEGER NOT NULL,
    change     TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX refused_changes_by_time ON refused_changes (created_us);

-- When a person asked, at another process, that a session end; NULL: nobody did. The process that runs it looks again and again.
ALTER TABLE agent_sessions ADD COLUMN stop_asked_us INTEGER;

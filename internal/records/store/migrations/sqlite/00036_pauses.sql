-- +goose Up

-- What people have paused: one row for everything (owner and repo are '') and one for each repository.
CREATE TABLE pauses (
    owner    TEXT NOT NULL,
    repo     TEXT NOT NULL,
    why      TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL, -- 0: until a person resumes
    PRIMARY KEY (owner, repo)
) STRICT, WITHOUT ROWID;

-- Tools that write, from before their first write until they have ended. process is their lock.
CREATE TABLE write_claims (
    id       TEXT NOT NULL PRIMARY KEY,
    owner    TEXT NOT NULL,
    repo     TEXT NOT NULL,
    process  TEXT NOT NULL,
    since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Up

-- What people have paused: one row for everything (owner and repo are '') and one for each repository.
CREATE TABLE pauses (
    owner    TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL,
    why      TEXT COLLATE "C" NOT NULL,
    paused_by TEXT COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL, -- 0: until a person resumes
    PRIMARY KEY (owner, repo)
);

-- Tools that write, from before their first write until they have ended. process is their lock.
CREATE TABLE write_claims (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner    TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL,
    process  TEXT COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL
);

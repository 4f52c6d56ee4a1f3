-- +goose Up

-- What agents noted for later sessions, newest last. The oldest entries go when there are too many.
CREATE TABLE agent_journal (
    session TEXT COLLATE "C" NOT NULL REFERENCES agent_sessions (id),
    seq     BIGINT NOT NULL,
    time_us BIGINT NOT NULL,
    body    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
);

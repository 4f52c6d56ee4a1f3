-- +goose Up

-- What agents noted for later sessions, newest last. The oldest entries go when there are too many.
CREATE TABLE agent_journal (
    session TEXT NOT NULL REFERENCES agent_sessions (id),
    seq     INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- +goose Up

-- How the sessions of the schedule ended: counted, so that metrics and pages need not read every session.
CREATE TABLE scheduled_sessions (
    state   TEXT NOT NULL,
    cause   TEXT NOT NULL,
    count   INTEGER NOT NULL,
    last_us INTEGER NOT NULL, -- when the last one ended so
    PRIMARY KEY (state, cause)
) STRICT, WITHOUT ROWID;

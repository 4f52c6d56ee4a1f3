-- +goose Up

-- How the sessions of the schedule ended: counted, so that metrics and pages need not read every session.
CREATE TABLE scheduled_sessions (
    state   TEXT COLLATE "C" NOT NULL,
    cause   TEXT COLLATE "C" NOT NULL,
    count   BIGINT NOT NULL,
    last_us BIGINT NOT NULL, -- when the last one ended so
    PRIMARY KEY (state, cause)
);

-- +goose Up
-- Logout tokens of providers of identities that were taken, so that none ends a later login.
CREATE TABLE logout_tokens (
    issuer   TEXT NOT NULL,
    id       TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY (issuer, id)
) STRICT, WITHOUT ROWID;

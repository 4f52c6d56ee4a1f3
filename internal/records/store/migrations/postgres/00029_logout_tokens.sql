-- +goose Up
-- Logout tokens of providers of identities that were taken, so that none ends a later login.
CREATE TABLE logout_tokens (
    issuer   TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    until_us BIGINT NOT NULL,
    PRIMARY KEY (issuer, id)
);

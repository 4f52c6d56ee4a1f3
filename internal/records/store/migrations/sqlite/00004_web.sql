-- +goose Up

-- Who may call the server. Secrets are not kept, only their SHA-256.
CREATE TABLE api_tokens (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    max_tier   INTEGER NOT NULL,
    scopes     TEXT NOT NULL,  -- words separated by commas
    created_us INTEGER NOT NULL,
    revoked_us INTEGER         -- NULL: it is good
) STRICT;
CREATE UNIQUE INDEX api_tokens_one_good ON api_tokens (name) WHERE revoked_us IS NULL;

CREATE TABLE web_sessions (
    hash       TEXT PRIMARY KEY NOT NULL,
    token_hash TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    seen_us    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was answered under an Idempotency-Key. status 0: nothing yet.
CREATE TABLE idempotency_keys (
    principal  TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    status     INTEGER NOT NULL DEFAULT 0,
    answer     BLOB NOT NULL DEFAULT x'',
    created_us INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_us);

-- What the audit says of proposals, in a form that is quick to filter and search. It proves nothing: everything in it comes
-- from the audit, row by row.
CREATE TABLE attempts (
    seq        INTEGER PRIMARY KEY NOT NULL, -- of the audit
    time_us    INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    provider   TEXT NOT NULL,
    repo       TEXT NOT NULL, -- owner/name, lower case
    door       TEXT NOT NULL,
    caller     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    code       TEXT NOT NULL,
    search     TEXT NOT NULL  -- title and paths, lower case
) STRICT;
CREATE INDEX attempts_by_repo ON attempts (repo, seq);
CREATE INDEX attempts_by_caller ON attempts (caller, seq);
CREATE INDEX attempts_by_outcome ON attempts (outcome, seq);
CREATE INDEX attempts_by_code ON attempts (code, seq);
CREATE INDEX attempts_by_time ON attempts (time_us, outcome);

-- The gates that denied an attempt.
CREATE TABLE attempt_gates (
    gate TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (gate, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO attempts (seq, time_us, request_id, provider, repo, door, caller, outcome, code, search)
SELECT seq, time_us, request_id, provider, LOWER(owner || '/' || repo), door, caller, outcome, code,
    LOWER(SUBSTR(title || ' ' || paths, 1, 2000))
FROM audit WHERE action IN ('create_pr', 'create_pr.settle');

INSERT INTO attempt_gates (gate, seq)
SELECT DISTINCT json_extract(v.value, '$.gate'), a.seq FROM audit a, json_each(a.verdicts) v
WHERE a.action IN ('create_pr', 'create_pr.settle') AND json_extract(v.value, '$.ruling') = 'deny';

CREATE INDEX audit_by_caller ON audit (caller, seq);
CREATE INDEX audit_by_code ON audit (code, seq);

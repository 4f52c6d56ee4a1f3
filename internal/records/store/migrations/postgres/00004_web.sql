-- +goose Up

-- Who may call the server. Secrets are not kept, only their SHA-256.
CREATE TABLE api_tokens (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL UNIQUE,
    max_tier   BIGINT NOT NULL,
    scopes     TEXT COLLATE "C" NOT NULL,  -- words separated by commas
    created_us BIGINT NOT NULL,
    revoked_us BIGINT         -- NULL: it is good
);
CREATE UNIQUE INDEX api_tokens_one_good ON api_tokens (name) WHERE revoked_us IS NULL;

CREATE TABLE web_sessions (
    hash       TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    token_hash TEXT COLLATE "C" NOT NULL,
    created_us BIGINT NOT NULL,
    seen_us    BIGINT NOT NULL
);

-- What was answered under an Idempotency-Key. status 0: nothing yet.
CREATE TABLE idempotency_keys (
    principal  TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    body_hash  TEXT COLLATE "C" NOT NULL,
    status     BIGINT NOT NULL DEFAULT 0,
    answer     BYTEA NOT NULL DEFAULT '',
    created_us BIGINT NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_us);

-- What the audit says of proposals, in a form that is quick to filter and search. It proves nothing: everything in it comes
-- from the audit, row by row.
CREATE TABLE attempts (
    seq        BIGINT PRIMARY KEY NOT NULL, -- of the audit
    time_us    BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    provider   TEXT COLLATE "C" NOT NULL,
    repo       TEXT COLLATE "C" NOT NULL, -- owner/name, lower case
    door       TEXT COLLATE "C" NOT NULL,
    caller     TEXT COLLATE "C" NOT NULL,
    outcome    TEXT COLLATE "C" NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    search     TEXT COLLATE "C" NOT NULL  -- title and paths, lower case
);
CREATE INDEX attempts_by_repo ON attempts (repo, seq);
CREATE INDEX attempts_by_caller ON attempts (caller, seq);
CREATE INDEX attempts_by_outcome ON attempts (outcome, seq);
CREATE INDEX attempts_by_code ON attempts (code, seq);
CREATE INDEX attempts_by_time ON attempts (time_us, outcome);

-- The gates that denied an attempt.
CREATE TABLE attempt_gates (
    gate TEXT COLLATE "C" NOT NULL,
    seq  BIGINT NOT NULL,
    PRIMARY KEY (gate, seq)
);

INSERT INTO attempts (seq, time_us, request_id, provider, repo, door, caller, outcome, code, search)
SELECT seq, time_us, request_id, provider, LOWER(owner || '/' || repo), door, caller, outcome, code,
    LOWER(SUBSTR(title || ' ' || paths, 1, 2000))
FROM audit WHERE action IN ('create_pr', 'create_pr.settle');

INSERT INTO attempt_gates (gate, seq)
SELECT DISTINCT v.value ->> 'gate', a.seq FROM audit a, json_array_elements(a.verdicts::json) v
WHERE a.action IN ('create_pr', 'create_pr.settle') AND v.value ->> 'ruling' = 'deny';

CREATE INDEX audit_by_caller ON audit (caller, seq);
CREATE INDEX audit_by_code ON audit (code, seq);

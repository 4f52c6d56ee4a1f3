-- Times are microseconds since 1970-01-01 UTC. Text that people or agents wrote is stored escaped (see text.go). Text is
-- compared and sorted by its bytes, as on SQLite, whatever the locale of the database.

-- +goose Up
CREATE TABLE proposals (
    id          TEXT COLLATE "C" PRIMARY KEY,
    created_us  BIGINT NOT NULL,
    opened_us   BIGINT, -- when the pull request was recorded
    opened_seq  BIGINT, -- the audit row that recorded it
    door        TEXT COLLATE "C" NOT NULL,
    caller      TEXT COLLATE "C" NOT NULL,
    tier        BIGINT NOT NULL,
    provider    TEXT COLLATE "C" NOT NULL,
    owner       TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    base        TEXT COLLATE "C" NOT NULL,
    base_commit TEXT COLLATE "C" NOT NULL,
    change_type TEXT COLLATE "C" NOT NULL,
    title       TEXT COLLATE "C" NOT NULL,
    body        TEXT COLLATE "C" NOT NULL,
    digest      TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (
                    state IN ('reserved', 'committed', 'unsettled', 'opened', 'failed', 'dry_run')),
    branch      TEXT COLLATE "C" NOT NULL,
    commit_id   TEXT COLLATE "C" NOT NULL,
    pr_number   BIGINT NOT NULL,
    pr_url      TEXT COLLATE "C" NOT NULL
);
CREATE INDEX proposals_by_digest ON proposals (digest, state);
CREATE INDEX proposals_by_opening ON proposals (provider, owner, repo, opened_us);
CREATE INDEX proposals_by_position ON proposals (provider, owner, repo, opened_seq);

CREATE TABLE proposal_files (
    proposal_id TEXT COLLATE "C" NOT NULL REFERENCES proposals (id),
    path        TEXT COLLATE "C" NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    content     BYTEA NOT NULL,
    PRIMARY KEY (proposal_id, path)
);

-- One row for each path that a reserved, committed or unsettled proposal holds.
CREATE TABLE reservations (
    provider    TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL, -- owner/name
    path        TEXT COLLATE "C" NOT NULL, -- in lower case
    proposal_id TEXT COLLATE "C" NOT NULL REFERENCES proposals (id),
    UNIQUE (provider, repo, path)
);
CREATE INDEX reservations_by_proposal ON reservations (proposal_id);

CREATE TABLE local_prs (
    repo        TEXT COLLATE "C" NOT NULL, -- owner/name
    number      BIGINT NOT NULL,
    title       TEXT COLLATE "C" NOT NULL,
    body        TEXT COLLATE "C" NOT NULL,
    url         TEXT COLLATE "C" NOT NULL,
    branch      TEXT COLLATE "C" NOT NULL,
    head_commit TEXT COLLATE "C" NOT NULL,
    base        TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('open', 'closed', 'merged')),
    labels      TEXT COLLATE "C" NOT NULL, -- JSON array
    paths       TEXT COLLATE "C" NOT NULL, -- JSON array
    created_us  BIGINT NOT NULL,
    closed_us   BIGINT,
    PRIMARY KEY (repo, number)
);
CREATE UNIQUE INDEX local_prs_one_open ON local_prs (repo, branch, base) WHERE state = 'open';

CREATE TABLE local_reviews (
    repo         TEXT COLLATE "C" NOT NULL,
    number       BIGINT NOT NULL,
    position     BIGINT NOT NULL,
    author       TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    submitted_us BIGINT,
    PRIMARY KEY (repo, number, position),
    FOREIGN KEY (repo, number) REFERENCES local_prs (repo, number)
);

CREATE TABLE audit (
    seq         BIGINT PRIMARY KEY,
    prev_hash   TEXT COLLATE "C" NOT NULL,
    time_us     BIGINT NOT NULL,
    request_id  TEXT COLLATE "C" NOT NULL,
    door        TEXT COLLATE "C" NOT NULL,
    caller      TEXT COLLATE "C" NOT NULL,
    tier        BIGINT NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    provider    TEXT COLLATE "C" NOT NULL,
    owner       TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    base        TEXT COLLATE "C" NOT NULL,
    branch      TEXT COLLATE "C" NOT NULL,
    title       TEXT COLLATE "C" NOT NULL,
    paths       TEXT COLLATE "C" NOT NULL, -- JSON array
    digest      TEXT COLLATE "C" NOT NULL,
    verdicts    TEXT COLLATE "C" NOT NULL, -- JSON array
    outcome     TEXT COLLATE "C" NOT NULL,
    code        TEXT COLLATE "C" NOT NULL,
    message     TEXT COLLATE "C" NOT NULL,
    pr_number   BIGINT NOT NULL,
    pr_url      TEXT COLLATE "C" NOT NULL,
    duration_us BIGINT NOT NULL,
    hash        TEXT COLLATE "C" NOT NULL CHECK (length(hash) = 64)
);
CREATE INDEX audit_by_request ON audit (request_id);
CREATE INDEX audit_by_repo ON audit (owner, repo, seq);
CREATE INDEX audit_by_outcome ON audit (outcome, code, seq);

-- The table is named by its schema, so that no search_path and no temporary table stands in for it.
-- +goose StatementBegin
CREATE FUNCTION audit_insert_extends_chain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last_seq  BIGINT;
    last_hash TEXT;
BEGIN
    EXECUTE format('SELECT seq, hash FROM %I.%I ORDER BY seq DESC LIMIT 1', TG_TABLE_SCHEMA, TG_TABLE_NAME)
        INTO last_seq, last_hash;
    IF NEW.seq IS DISTINCT FROM COALESCE(last_seq, 0) + 1
       OR NEW.prev_hash IS DISTINCT FROM COALESCE(last_hash, repeat('0', 64)) THEN
        RAISE EXCEPTION 'the audit is a chain: a new row follows the last one'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_refuses_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is append-only: rows are never changed or deleted'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_insert_extends_chain BEFORE INSERT ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_insert_extends_chain();
CREATE TRIGGER audit_refuses_changes BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses_changes();

-- Also where session_replication_role turns ordinary triggers off.
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_insert_extends_chain;
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_refuses_changes;

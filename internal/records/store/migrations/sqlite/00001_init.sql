-- Times are microseconds since 1970-01-01 UTC. Text that people or agents wrote is stored escaped (see text.go).

-- +goose Up
CREATE TABLE proposals (
    id          TEXT PRIMARY KEY NOT NULL,
    created_us  INTEGER NOT NULL,
    opened_us   INTEGER, -- when the pull request was recorded
    opened_seq  INTEGER, -- the audit row that recorded it
    door        TEXT NOT NULL,
    caller      TEXT NOT NULL,
    tier        INTEGER NOT NULL,
    provider    TEXT NOT NULL,
    owner       TEXT NOT NULL,
    repo        TEXT NOT NULL,
    base        TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    change_type TEXT NOT NULL,
    title       TEXT NOT NULL,
    body        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (
                    state IN ('reserved', 'committed', 'unsettled', 'opened', 'failed', 'dry_run')),
    branch      TEXT NOT NULL,
    commit_id   TEXT NOT NULL,
    pr_number   INTEGER NOT NULL,
    pr_url      TEXT NOT NULL
) STRICT;
CREATE INDEX proposals_by_digest ON proposals (digest, state);
CREATE INDEX proposals_by_opening ON proposals (provider, owner, repo, opened_us);
CREATE INDEX proposals_by_position ON proposals (provider, owner, repo, opened_seq);

CREATE TABLE proposal_files (
    proposal_id TEXT NOT NULL REFERENCES proposals (id),
    path        TEXT NOT NULL,
    action      TEXT NOT NULL,
    content     BLOB NOT NULL,
    PRIMARY KEY (proposal_id, path)
) STRICT;

-- One row for each path that a reserved, committed or unsettled proposal holds.
CREATE TABLE reservations (
    provider    TEXT NOT NULL,
    repo        TEXT NOT NULL, -- owner/name
    path        TEXT NOT NULL, -- in lower case
    proposal_id TEXT NOT NULL REFERENCES proposals (id),
    UNIQUE (provider, repo, path)
) STRICT;
CREATE INDEX reservations_by_proposal ON reservations (proposal_id);

CREATE TABLE local_prs (
    repo        TEXT NOT NULL, -- owner/name
    number      INTEGER NOT NULL,
    title       TEXT NOT NULL,
    body        TEXT NOT NULL,
    url         TEXT NOT NULL,
    branch      TEXT NOT NULL,
    head_commit TEXT NOT NULL,
    base        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'closed', 'merged')),
    labels      TEXT NOT NULL, -- JSON array
    paths       TEXT NOT NULL, -- JSON array
    created_us  INTEGER NOT NULL,
    closed_us   INTEGER,
    PRIMARY KEY (repo, number)
) STRICT;
CREATE UNIQUE INDEX local_prs_one_open ON local_prs (repo, branch, base) WHERE state = 'open';

CREATE TABLE local_reviews (
    repo         TEXT NOT NULL,
    number       INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    author       TEXT NOT NULL,
    state        TEXT NOT NULL,
    body         TEXT NOT NULL,
    submitted_us INTEGER,
    PRIMARY KEY (repo, number, position),
    FOREIGN KEY (repo, number) REFERENCES local_prs (repo, number)
) STRICT;

-- No constraint but the one on seq may be unique: INSERT OR REPLACE would delete the row that it clashes with, and
-- SQLite fires no delete trigger for that. A clash of seq is caught by the insert trigger.
CREATE TABLE audit (
    seq         INTEGER PRIMARY KEY NOT NULL,
    prev_hash   TEXT NOT NULL,
    time_us     INTEGER NOT NULL,
    request_id  TEXT NOT NULL,
    door        TEXT NOT NULL,
    caller      TEXT NOT NULL,
    tier        INTEGER NOT NULL,
    action      TEXT NOT NULL,
    provider    TEXT NOT NULL,
    owner       TEXT NOT NULL,
    repo        TEXT NOT NULL,
    base        TEXT NOT NULL,
    branch      TEXT NOT NULL,
    title       TEXT NOT NULL,
    paths       TEXT NOT NULL, -- JSON array
    digest      TEXT NOT NULL,
    verdicts    TEXT NOT NULL, -- JSON array
    outcome     TEXT NOT NULL,
    code        TEXT NOT NULL,
    message     TEXT NOT NULL,
    pr_number   INTEGER NOT NULL,
    pr_url      TEXT NOT NULL,
    duration_us INTEGER NOT NULL,
    hash        TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;
CREATE INDEX audit_by_request ON audit (request_id);
CREATE INDEX audit_by_repo ON audit (owner, repo, seq);
CREATE INDEX audit_by_outcome ON audit (outcome, code, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_insert_extends_chain BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM audit)
  OR NEW.prev_hash IS NOT COALESCE((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1),
       '0000000000000000000000000000000000000000000000000000000000000000')
BEGIN
    SELECT RAISE(ABORT, 'the audit is a chain: a new row follows the last one');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: rows are never changed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: rows are never deleted');
END;
-- +goose StatementEnd

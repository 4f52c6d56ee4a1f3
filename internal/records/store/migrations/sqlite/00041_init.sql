-- +goose Up

-- Times are microseconds since 1970-01-01 UTC. Text that people or agents wrote is stored escaped (see text.go).

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
    pr_url      TEXT NOT NULL,
    -- The process that made the proposal (engine.go, presence).
    process     TEXT NOT NULL DEFAULT '',
    -- When body and contents of a settled proposal were removed; NULL: they are there.
    pruned_us   INTEGER,
    -- The agent's session in which a proposal or an attempt was made; '' for none. It is not part of the audit's text.
    session     TEXT NOT NULL DEFAULT '',
    -- When we began to remove what the proposal had written; 0: never. That its pull request is closed is then nobody's
    -- decision.
    undone_us   INTEGER NOT NULL DEFAULT 0,
    -- The number of the pull request of ours to which the proposal adds a commit; 0 for one that opens its own.
    revises     INTEGER NOT NULL DEFAULT 0,
    -- What the proposal answers to the review of the pull request that it adds to, as JSON; '' for nothing.
    answers     TEXT NOT NULL DEFAULT '',
    actor       TEXT NOT NULL DEFAULT '',
    -- What the lines of a proposal name and do, as JSON; '' for nothing, or where they were removed with the contents.
    facts       TEXT NOT NULL DEFAULT '',
    -- The hash of the policy that judged a proposal, as the audit has it; '' in older ones.
    policy      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX proposals_by_digest ON proposals (digest, state);
CREATE INDEX proposals_by_opening ON proposals (provider, owner, repo, opened_us);
CREATE INDEX proposals_by_position ON proposals (provider, owner, repo, opened_seq);
CREATE INDEX proposals_by_pull ON proposals (provider, owner, repo, pr_number, opened_seq);
CREATE INDEX proposals_unpruned ON proposals (created_us) WHERE pruned_us IS NULL;
CREATE INDEX proposals_undone ON proposals (provider, owner, repo, undone_us) WHERE undone_us > 0;
CREATE INDEX proposals_dry_runs ON proposals (created_us, id) WHERE state = 'dry_run' AND pruned_us IS NULL;

CREATE TABLE proposal_files (
    proposal_id TEXT NOT NULL REFERENCES proposals (id),
    path        TEXT NOT NULL,
    action      TEXT NOT NULL,
    content     BLOB NOT NULL,
    -- Which version of a file on the base branch the proposal was made for: its git blob id; '' if there was none or it
    -- is not known.
    base_sha    TEXT NOT NULL DEFAULT '',
    -- By which the same text under another name is known; see gitprovider.FileChange. '' for none.
    fingerprint TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (proposal_id, path)
) STRICT;
CREATE INDEX proposal_files_fingerprint ON proposal_files (fingerprint) WHERE fingerprint <> '';

-- One row for each path that a reserved, committed or unsettled proposal holds.
CREATE TABLE reservations (
    provider    TEXT NOT NULL,
    repo        TEXT NOT NULL, -- owner/name
    path        TEXT NOT NULL, -- in lower case
    proposal_id TEXT NOT NULL REFERENCES proposals (id),
    UNIQUE (provider, repo, path)
) STRICT;
CREATE INDEX reservations_by_proposal ON reservations (proposal_id);

-- Local repositories have the identity of their root (CLAUDEOPS_LOCAL_ROOT): the provider is 'local:' and that, and
-- repo in local_prs, local_reviews and local_review_comments begins with it and a colon.
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
    -- Who reviewed, beside the name.
    issuer       TEXT NOT NULL DEFAULT '',
    subject      TEXT NOT NULL DEFAULT '',
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
    hash        TEXT NOT NULL CHECK (length(hash) = 64),
    -- The hash of the policy that judged an attempt; '' in older rows, and where no policy could be read. The
    -- hash of a row covers it where it is not ''.
    policy      TEXT NOT NULL DEFAULT '',
    -- Who acted, as JSON (record.Actor); '' in older rows. The hash of a row of the audit covers it where it is
    -- not ''.
    actor       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX audit_by_request ON audit (request_id);
CREATE INDEX audit_by_repo ON audit (owner, repo, seq);
CREATE INDEX audit_by_outcome ON audit (outcome, code, seq);
CREATE INDEX audit_by_caller ON audit (caller, seq);
CREATE INDEX audit_by_code ON audit (code, seq);
-- What people filter the audit by.
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_number ON audit (pr_number, seq) WHERE pr_number > 0;

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

-- What people are to be told. Numbers are never used again: a sender may settle one long after.
CREATE TABLE notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    event      TEXT NOT NULL,
    payload    BLOB NOT NULL,
    state      TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
    attempts   INTEGER NOT NULL DEFAULT 0, -- how often it was claimed
    created_us INTEGER NOT NULL,
    due_us     INTEGER NOT NULL DEFAULT 0, -- when it may be claimed, if pending
    settled_us INTEGER,                    -- when it was delivered or given up
    error      TEXT NOT NULL DEFAULT ''    -- of the last attempt that failed
) STRICT;
CREATE INDEX notices_pending ON notices (due_us) WHERE state = 'pending';
CREATE INDEX notices_settled ON notices (state, settled_us);

-- What the pull requests of forges change at one head commit, so that they are asked once. The latest head alone
-- counts.
CREATE TABLE pull_paths (
    provider TEXT NOT NULL,
    repo     TEXT NOT NULL,    -- owner/name, lower case
    number   INTEGER NOT NULL,
    head     TEXT NOT NULL,
    paths    TEXT NOT NULL,    -- a JSON array
    seen_us  INTEGER NOT NULL,
    PRIMARY KEY (provider, repo, number)
) STRICT, WITHOUT ROWID;

-- Who may call the server. Secrets are not kept, only their SHA-256.
CREATE TABLE api_tokens (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    max_tier   INTEGER NOT NULL,
    scopes     TEXT NOT NULL,  -- words separated by commas
    created_us INTEGER NOT NULL,
    revoked_us INTEGER, -- NULL: it is good
    -- Tokens of interactive agents open the door over MCP and nothing else; they have no scopes. Any token may end by
    -- itself.
    agent      INTEGER NOT NULL DEFAULT 0,
    expires_us INTEGER,
    -- Whose a token is, and when it was last used.
    owner_issuer TEXT NOT NULL DEFAULT '',
    owner_subject TEXT NOT NULL DEFAULT '',
    used_us    INTEGER,
    -- The repositories that the token of an agent is for, separated by spaces; empty: those that the server allows.
    repos      TEXT NOT NULL DEFAULT '',
    -- An agent's token may be in a dry run, and read-only, by itself: 0 or 1.
    dry_run    INTEGER NOT NULL DEFAULT 0,
    read_only  INTEGER NOT NULL DEFAULT 0,
    -- Who made a token.
    maker      TEXT NOT NULL DEFAULT '',
    -- The hash of the token that a token was made with. It ends with that one, no matter who holds it.
    grantor    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX api_tokens_one_good ON api_tokens (name) WHERE revoked_us IS NULL;
CREATE INDEX api_tokens_by_grantor ON api_tokens (grantor);

CREATE TABLE web_sessions (
    hash       TEXT PRIMARY KEY NOT NULL,
    token_hash TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    seen_us    INTEGER NOT NULL,
    -- What is known of a browser that signed in: for a person of a provider, who it is, and what lets the provider be
    -- asked again, which only the browser's cookie opens.
    id         TEXT NOT NULL DEFAULT '', -- for people
    browser    TEXT NOT NULL DEFAULT '',
    issuer     TEXT NOT NULL DEFAULT '',
    subject    TEXT NOT NULL DEFAULT '',
    provider_session TEXT NOT NULL DEFAULT ''
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

-- What the audit says about proposals, in a form that is quick to filter and search. It proves nothing: everything in
-- it comes from the audit, row by row.
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
    search     TEXT NOT NULL, -- title and paths, lower case
    session    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX attempts_by_repo ON attempts (repo, seq);
CREATE INDEX attempts_by_caller ON attempts (caller, seq);
CREATE INDEX attempts_by_outcome ON attempts (outcome, seq);
CREATE INDEX attempts_by_code ON attempts (code, seq);
CREATE INDEX attempts_by_time ON attempts (time_us, outcome);
CREATE INDEX attempts_by_session ON attempts (session, seq) WHERE session <> '';
-- Why attempts were refused: of the last day by their time, and else by days.
CREATE INDEX attempts_refused ON attempts (time_us, code) WHERE outcome = 'refused';

-- The gates that denied an attempt.
CREATE TABLE attempt_gates (
    gate TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    -- When a gate refused an attempt; NULL where it denied one that ended otherwise. Refusals are counted by gate on
    -- every overview, and so without looking at the attempts.
    refused_us INTEGER,
    PRIMARY KEY (gate, seq)
) STRICT, WITHOUT ROWID;

-- What was last seen of the pull requests that we opened. The record of the proposals says how they came about.
CREATE TABLE pulls (
    provider    TEXT NOT NULL,
    owner       TEXT NOT NULL,
    repo        TEXT NOT NULL,
    number      INTEGER NOT NULL,
    proposal_id TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'closed', 'merged', 'gone')),
    head        TEXT NOT NULL DEFAULT '',
    approvals   INTEGER NOT NULL DEFAULT 0,
    objections  INTEGER NOT NULL DEFAULT 0,
    checks      TEXT NOT NULL DEFAULT '',
    updated_us  INTEGER NOT NULL,
    tried_us    INTEGER NOT NULL DEFAULT 0,
    seen_us     INTEGER,
    seen_by     TEXT NOT NULL DEFAULT '',
    ended_us    INTEGER,
    ended_by    TEXT NOT NULL DEFAULT '',
    misses      INTEGER NOT NULL DEFAULT 0,
    version     INTEGER NOT NULL DEFAULT 1,
    -- When somebody last asked for changes to a pull request, as far as anybody has looked, and when we last added a
    -- commit to it; NULL: never. Together they say whether the agent or a person is to act.
    asked_us    INTEGER,
    revised_us  INTEGER,
    -- Whose turn a pull request is (record.PullRecord.Standing), and the row of the audit that recorded it, by which
    -- lists are ordered.
    standing    TEXT GENERATED ALWAYS AS (
                    CASE WHEN state <> 'open' THEN state
                    WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent'
                    WHEN checks = 'failure' THEN 'failed' WHEN checks = 'pending' THEN 'running'
                    WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END) VIRTUAL,
    seq         INTEGER,
    -- When a person was last seen to act on a pull request, when people were last reminded of it, and a digest of the
    -- labels that it was last seen with.
    acted_us    INTEGER,
    reminded_us INTEGER,
    labels_digest TEXT NOT NULL DEFAULT '',
    -- When a person first reviewed a pull request, as far as anybody has looked; NULL: nobody has.
    reviewed_us INTEGER,
    -- When a process last began to close a pull request because nobody acts on it, and when we had closed it for that.
    closing_us  INTEGER,
    expired_us  INTEGER,
    PRIMARY KEY (provider, owner, repo, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX pulls_due ON pulls (provider, state, tried_us);
CREATE INDEX pulls_by_number ON pulls (number, provider);
CREATE INDEX pulls_open ON pulls (proposal_id) WHERE state = 'open';
CREATE INDEX pulls_by_proposal ON pulls (proposal_id, state);
CREATE INDEX pulls_by_standing ON pulls (standing, proposal_id);
CREATE INDEX pulls_in_order ON pulls (standing, seq);

-- Deliveries of webhooks that were taken, so that none is taken twice.
CREATE TABLE webhook_deliveries (
    provider TEXT NOT NULL,
    id       TEXT NOT NULL,
    seen_us  INTEGER NOT NULL,
    PRIMARY KEY (provider, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (seen_us);

-- When work that one process at a time does was begun last.
CREATE TABLE rounds (
    name     TEXT PRIMARY KEY NOT NULL,
    begun_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_sessions (
    id         TEXT PRIMARY KEY NOT NULL, -- sorted by time
    state      TEXT NOT NULL,
    process    TEXT NOT NULL,             -- that runs it (engine.go, presence)
    record     TEXT NOT NULL, -- session.Record as JSON
    -- When a person asked, at another process, that a session end; NULL: nobody did. The process that runs it looks
    -- again and again.
    stop_asked_us INTEGER
) STRICT;
CREATE INDEX agent_sessions_running ON agent_sessions (process) WHERE state = 'running';

CREATE TABLE agent_session_events (
    session TEXT NOT NULL REFERENCES agent_sessions (id),
    seq     INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    tool    TEXT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- Closed pull requests whose cooldown a person has lifted.
CREATE TABLE cooldown_lifts (
    provider  TEXT NOT NULL,
    owner     TEXT NOT NULL,
    repo      TEXT NOT NULL,
    number    INTEGER NOT NULL,
    lifted_us INTEGER NOT NULL, -- it ends what was closed before
    lifted_by TEXT NOT NULL,
    PRIMARY KEY (provider, owner, repo, number)
) STRICT;

-- What agents noted for later sessions, newest last. The oldest entries go when there are too many.
CREATE TABLE agent_journal (
    session TEXT NOT NULL REFERENCES agent_sessions (id),
    seq     INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    body    TEXT NOT NULL,
    -- The session that noted an entry, with those whose words it was told.
    actor   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- What sessions used of their models, for sums; session.Record has the same.
CREATE TABLE agent_session_usage (
    session            TEXT PRIMARY KEY NOT NULL REFERENCES agent_sessions (id),
    day                TEXT NOT NULL, -- on which it began, in UTC: 2006-01-02
    tier               INTEGER NOT NULL,
    state              TEXT NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_nano_usd      INTEGER NOT NULL,
    cost_source        TEXT NOT NULL, -- session.CostSource
    -- What kept the agent of a session from our files and processes; '' where it was not recorded.
    boundary           TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_session_usage_by_day ON agent_session_usage (day, tier);

-- The runs of scripts. A row is there before its script starts, so that none is lost; settled says that the audit has
-- it too.
CREATE TABLE script_runs (
    id         TEXT PRIMARY KEY,
    script     TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    ends_us    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    settled    INTEGER NOT NULL DEFAULT 0,
    record     TEXT NOT NULL
);
CREATE INDEX script_runs_by_script ON script_runs (script, id);
CREATE INDEX script_runs_unsettled ON script_runs (ends_us) WHERE settled = 0;
CREATE INDEX script_runs_by_time ON script_runs (started_us);

-- How many attempts there were a day (since 1970, UTC; -1: on all days together), by outcome ('outcome') and, refused
-- ones, by gate ('gate') and code ('code'). The overview shows them, so they are counted when they are recorded.
CREATE TABLE day_counts (
    kind  TEXT NOT NULL,
    day   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, day, name)
) STRICT, WITHOUT ROWID;

-- Parts of titles and paths, which a search finds without looking at every attempt.
CREATE VIRTUAL TABLE attempt_texts USING fts5 (search, content = 'attempts', content_rowid = 'seq',
    tokenize = 'trigram case_sensitive 1');

-- +goose StatementBegin
CREATE TRIGGER attempts_have_texts AFTER INSERT ON attempts
BEGIN
    INSERT INTO attempt_texts (rowid, search) VALUES (NEW.seq, NEW.search);
END;
-- +goose StatementEnd

-- How far the heads of the audit were exported: the last row that each sink has taken. What follows it is still to be
-- exported, by whatever process comes next.
CREATE TABLE audit_exports (
    sink        TEXT NOT NULL PRIMARY KEY,
    seq         INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    exported_us INTEGER,
    problem     TEXT NOT NULL DEFAULT '',
    problem_us  INTEGER
) STRICT;

-- What reviews of local pull requests say of lines of files.
CREATE TABLE local_review_comments (
    repo      TEXT NOT NULL, -- owner/name
    number    INTEGER NOT NULL,
    review    INTEGER NOT NULL, -- its position in local_reviews
    position  INTEGER NOT NULL,
    path      TEXT NOT NULL,
    line      INTEGER NOT NULL,
    before    INTEGER NOT NULL, -- 1: a line of the file as it was before the change
    commit_id TEXT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (repo, number, review, position),
    FOREIGN KEY (repo, number, review) REFERENCES local_reviews (repo, number, position)
) STRICT;

-- What attempts wanted that were refused, without what may be a secret: an aid for people, and no part of the audit.
CREATE TABLE refused_changes (
    request_id TEXT NOT NULL PRIMARY KEY,
    created_us INTEGER NOT NULL,
    change     TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX refused_changes_by_time ON refused_changes (created_us);

-- Agents that are connected to a process. One that a person cut off stays until it has been over for a while: so long
-- its token lets nobody in.
CREATE TABLE agent_connections (
    id         TEXT PRIMARY KEY NOT NULL,
    process    TEXT NOT NULL,   -- that serves it (engine.go, presence)
    session    TEXT NOT NULL,   -- of the agent; '' for none
    credential TEXT NOT NULL,   -- the token's name; '' for the ticket of the session
    tier       INTEGER NOT NULL,
    dry_run    INTEGER NOT NULL,
    read_only  INTEGER NOT NULL,
    way        TEXT NOT NULL,
    peer       TEXT NOT NULL,
    since_us   INTEGER NOT NULL,
    calls      INTEGER NOT NULL, -- under way
    cut_us     INTEGER,          -- when a person cut it off
    cut_by     TEXT NOT NULL DEFAULT '',
    ended_us   INTEGER
) STRICT;
CREATE INDEX agent_connections_cut ON agent_connections (credential, cut_us) WHERE cut_us IS NOT NULL;

-- Persons whom a provider of identities has recognised. A name is given to one of them for ever, so that whatever is
-- recorded under it is theirs.
CREATE TABLE people (
    issuer    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    provider  TEXT NOT NULL, -- as the operator names it
    name      TEXT NOT NULL UNIQUE, -- in the record
    username  TEXT NOT NULL, -- at the provider
    member_of TEXT NOT NULL, -- JSON
    looked_us INTEGER NOT NULL, -- when the provider last said so
    -- What lets a provider of identities be asked about a person belongs to the person, and to none of their logins:
    -- tokens and programs are judged by it, too.
    sealed    TEXT NOT NULL DEFAULT '',
    refused   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (issuer, subject)
) STRICT;

-- Programs that have registered to ask people to let them in as agents (OAuth 2.1).
CREATE TABLE oauth_clients (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL, -- as the program calls itself
    redirects  TEXT NOT NULL, -- JSON: the addresses that browsers may be sent back to
    created_us INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_clients_by_age ON oauth_clients (created_us);

-- What a person has allowed, until the program comes for it. Of codes, as of all secrets, only the SHA-256 is kept.
CREATE TABLE oauth_codes (
    hash          TEXT PRIMARY KEY NOT NULL,
    client        TEXT NOT NULL,
    redirect      TEXT NOT NULL,
    challenge     TEXT NOT NULL, -- of PKCE, by S256
    name          TEXT NOT NULL, -- of the token that is to be made
    max_tier      INTEGER NOT NULL,
    repos         TEXT NOT NULL,
    dry_run       INTEGER NOT NULL,
    owner_issuer  TEXT NOT NULL,
    owner_subject TEXT NOT NULL,
    grantor       TEXT NOT NULL, -- hash of the token by which the person was signed in
    expires_us    INTEGER NOT NULL,
    token         TEXT NOT NULL DEFAULT '', -- id of the token that was made of it; '': it is unused
    -- Who has allowed a program what it exchanges its code for.
    maker         TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX oauth_codes_by_age ON oauth_codes (expires_us);

-- What a program shows for a token of an agent that a person gave it this way.
CREATE TABLE oauth_grants (
    token            TEXT PRIMARY KEY NOT NULL, -- id in api_tokens
    client           TEXT NOT NULL,
    client_name      TEXT NOT NULL,
    family           TEXT NOT NULL UNIQUE, -- what all its refresh tokens begin with
    refresh          TEXT NOT NULL,        -- the only refresh token that is good
    refresh_until_us INTEGER NOT NULL,
    access           TEXT NOT NULL UNIQUE,
    access_until_us  INTEGER NOT NULL,
    former           TEXT NOT NULL, -- the access token before it
    former_until_us  INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client);
CREATE INDEX oauth_grants_by_former ON oauth_grants (former);

-- How many pull requests stand so. Triggers count each change, so that a reader reads a few rows.
CREATE TABLE pull_counts (
    provider TEXT NOT NULL,
    standing TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (provider, standing)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER pulls_count_new AFTER INSERT ON pulls
BEGIN
    INSERT INTO pull_counts (provider, standing, count) VALUES (NEW.provider, NEW.standing, 1)
        ON CONFLICT (provider, standing) DO UPDATE SET count = pull_counts.count + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pulls_count_changed AFTER UPDATE ON pulls
WHEN OLD.standing <> NEW.standing OR OLD.provider <> NEW.provider
BEGIN
    UPDATE pull_counts SET count = count - 1 WHERE provider = OLD.provider AND standing = OLD.standing;
    INSERT INTO pull_counts (provider, standing, count) VALUES (NEW.provider, NEW.standing, 1)
        ON CONFLICT (provider, standing) DO UPDATE SET count = pull_counts.count + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pulls_count_gone AFTER DELETE ON pulls
BEGIN
    UPDATE pull_counts SET count = count - 1 WHERE provider = OLD.provider AND standing = OLD.standing;
END;
-- +goose StatementEnd

-- The dry runs whose contents are there, and the rows of the audit that recorded them. They wait while no proposal has
-- taken their change up.
CREATE TABLE dry_runs (
    id         TEXT PRIMARY KEY NOT NULL,
    seq        INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    provider   TEXT NOT NULL,
    digest     TEXT NOT NULL,
    waits      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX dry_runs_by_change ON dry_runs (digest, provider);
CREATE INDEX dry_runs_by_time ON dry_runs (created_us, id, provider) WHERE waits = 1;
CREATE INDEX dry_runs_in_order ON dry_runs (seq, created_us) WHERE waits = 1;

-- +goose StatementBegin
CREATE TRIGGER attempts_wait AFTER INSERT ON attempts
BEGIN
    INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
    SELECT p.id, NEW.seq, p.created_us, p.provider, p.digest, CASE WHEN EXISTS (
            SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
                AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    FROM proposals p WHERE p.id = NEW.request_id AND p.state = 'dry_run' AND p.pruned_us IS NULL
    ON CONFLICT (id) DO NOTHING;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER proposals_take_up AFTER INSERT ON proposals
WHEN NEW.state IN ('reserved', 'committed', 'unsettled', 'opened')
BEGIN
    UPDATE dry_runs SET waits = 0 WHERE digest = NEW.digest AND provider = NEW.provider;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER proposals_pruned AFTER UPDATE OF pruned_us ON proposals
WHEN NEW.pruned_us IS NOT NULL
BEGIN
    DELETE FROM dry_runs WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER proposals_change AFTER UPDATE OF state, provider ON proposals
WHEN OLD.provider <> NEW.provider OR OLD.state <> NEW.state
        AND (OLD.state IN ('dry_run', 'failed') OR NEW.state IN ('dry_run', 'failed'))
BEGIN
    DELETE FROM dry_runs WHERE id = NEW.id AND NEW.state <> 'dry_run';
    UPDATE dry_runs SET provider = NEW.provider WHERE id = NEW.id;
    UPDATE dry_runs SET waits = CASE WHEN EXISTS (
            SELECT 1 FROM proposals taken WHERE taken.digest = dry_runs.digest AND taken.provider = dry_runs.provider
                AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    WHERE digest = NEW.digest AND provider IN (OLD.provider, NEW.provider);
END;
-- +goose StatementEnd

-- Logout tokens of providers of identities that were taken, so that none ends a later login.
CREATE TABLE logout_tokens (
    issuer   TEXT NOT NULL,
    id       TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY (issuer, id)
) STRICT, WITHOUT ROWID;

-- How the sessions of the schedule ended: counted, so that metrics and pages need not read every session.
CREATE TABLE scheduled_sessions (
    state   TEXT NOT NULL,
    cause   TEXT NOT NULL,
    count   INTEGER NOT NULL,
    last_us INTEGER NOT NULL, -- when the last one ended so
    PRIMARY KEY (state, cause)
) STRICT, WITHOUT ROWID;

-- How many dry runs wait, by the day on which they were made (-1 for all) and by provider: counted in day_counts as
-- they come and go, since a page reads their number after each record.
-- +goose StatementBegin
CREATE TRIGGER dry_runs_count_new AFTER INSERT ON dry_runs
WHEN NEW.waits = 1
BEGIN
    INSERT INTO day_counts (kind, day, name, count)
        VALUES ('waiting', NEW.created_us / 86400000000, NEW.provider, 1), ('waiting', -1, NEW.provider, 1)
        ON CONFLICT (kind, day, name) DO UPDATE SET count = day_counts.count + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dry_runs_count_gone AFTER DELETE ON dry_runs
WHEN OLD.waits = 1
BEGIN
    UPDATE day_counts SET count = count - 1 WHERE kind = 'waiting' AND name = OLD.provider
        AND day IN (OLD.created_us / 86400000000, -1);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dry_runs_count_less AFTER UPDATE ON dry_runs
WHEN OLD.waits = 1 AND (NEW.waits <> 1 OR OLD.provider <> NEW.provider)
BEGIN
    UPDATE day_counts SET count = count - 1 WHERE kind = 'waiting' AND name = OLD.provider
        AND day IN (OLD.created_us / 86400000000, -1);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dry_runs_count_more AFTER UPDATE ON dry_runs
WHEN NEW.waits = 1 AND (OLD.waits <> 1 OR OLD.provider <> NEW.provider)
BEGIN
    INSERT INTO day_counts (kind, day, name, count)
        VALUES ('waiting', NEW.created_us / 86400000000, NEW.provider, 1), ('waiting', -1, NEW.provider, 1)
        ON CONFLICT (kind, day, name) DO UPDATE SET count = day_counts.count + 1;
END;
-- +goose StatementEnd

-- What people have paused: one row for everything (owner and repo are '') and one for each repository.
CREATE TABLE pauses (
    owner    TEXT NOT NULL,
    repo     TEXT NOT NULL,
    why      TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL, -- 0: until a person resumes
    PRIMARY KEY (owner, repo)
) STRICT, WITHOUT ROWID;

-- Tools that write, from before their first write until they have ended. process is their lock.
CREATE TABLE write_claims (
    id       TEXT NOT NULL PRIMARY KEY,
    owner    TEXT NOT NULL,
    repo     TEXT NOT NULL,
    process  TEXT NOT NULL,
    since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How changes ended, counted as they end: pull requests by the day on which they were opened, refusals by their own day
-- (since 1970, UTC), each by what a page groups them by: agent, tier, repository and session. kind is
--   pull     name says how it stands: merged, revised (merged after a revision), closed, gone,
--            ignored (closed by us because nobody had acted on it), reviewed or waiting
--   review   value is after how many begun minutes it was reviewed, merged or closed; above 6 hours, full hours
--   merge    value is after how many it was merged, likewise
--   refused  name is the code
CREATE TABLE outcome_cells (
    by_what  TEXT NOT NULL,
    day      INTEGER NOT NULL,
    grp      TEXT NOT NULL, -- the agent, the tier, owner/name in lower case, or the session
    provider TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    value    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (by_what, day, grp, provider, kind, name, value)
) STRICT, WITHOUT ROWID;

-- How each pull request stands, and after which time it was reviewed and merged, as a value of outcome_cells.
CREATE VIEW pull_fates AS
SELECT provider, owner, repo, number, day, session, tier, caller, fate,
    CASE WHEN reviewed < 1 THEN 1 WHEN reviewed <= 360 THEN reviewed ELSE reviewed - reviewed % 60 END AS to_review,
    CASE WHEN merged < 1 THEN 1 WHEN merged <= 360 THEN merged ELSE merged - merged % 60 END AS to_merge
FROM (
    SELECT r.provider, r.owner, r.repo, r.number, p.opened_us / 86400000000 AS day, p.session, p.tier, p.caller,
        CASE WHEN r.state = 'closed' AND r.expired_us IS NOT NULL THEN 'ignored'
            WHEN r.state = 'merged' AND r.revised_us IS NOT NULL THEN 'revised' WHEN r.state <> 'open' THEN r.state
            WHEN r.reviewed_us IS NULL THEN 'waiting' ELSE 'reviewed' END AS fate,
        (CASE WHEN r.reviewed_us IS NOT NULL THEN r.reviewed_us
            WHEN r.state IN ('merged', 'closed') AND r.expired_us IS NULL THEN r.ended_us END
            - p.opened_us) / 60000000 + 1 AS reviewed,
        (CASE WHEN r.state = 'merged' THEN r.ended_us END - p.opened_us) / 60000000 + 1 AS merged
    FROM pulls r JOIN proposals p ON p.id = r.proposal_id WHERE p.opened_us IS NOT NULL
) f;

-- The cells in which each pull request is counted.
CREATE VIEW pull_cells AS
SELECT f.provider, f.owner, f.repo, f.number, b.by_what, f.day,
    CASE b.by_what WHEN 'agent' THEN f.caller WHEN 'tier' THEN CAST(f.tier AS TEXT) WHEN 'session' THEN f.session
        ELSE LOWER(f.owner || '/' || f.repo) END AS grp,
    k.kind, CASE k.kind WHEN 'pull' THEN f.fate ELSE '' END AS name,
    CASE WHEN k.kind = 'pull' THEN 0 ELSE CASE k.kind WHEN 'review' THEN f.to_review ELSE f.to_merge END END AS value
FROM pull_fates f
JOIN (SELECT 'agent' AS by_what UNION ALL SELECT 'tier' UNION ALL SELECT 'repository' UNION ALL SELECT 'session') b
    ON b.by_what <> 'session' OR f.session <> ''
JOIN (SELECT 'pull' AS kind UNION ALL SELECT 'review' UNION ALL SELECT 'merge') k
    ON k.kind = 'pull' OR k.kind = 'review' AND f.to_review > 0 OR k.kind = 'merge' AND f.to_merge > 0;

-- +goose StatementBegin
CREATE TRIGGER pulls_cells_new AFTER INSERT ON pulls
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, 1 FROM pull_cells
        WHERE provider = NEW.provider AND owner = NEW.owner AND repo = NEW.repo AND number = NEW.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pulls_cells_gone BEFORE DELETE ON pulls
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, -1 FROM pull_cells
        WHERE provider = OLD.provider AND owner = OLD.owner AND repo = OLD.repo AND number = OLD.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pulls_cells_were BEFORE UPDATE ON pulls
WHEN NEW.state IS NOT OLD.state OR NEW.provider IS NOT OLD.provider OR NEW.ended_us IS NOT OLD.ended_us
    OR NEW.revised_us IS NOT OLD.revised_us OR NEW.reviewed_us IS NOT OLD.reviewed_us
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, -1 FROM pull_cells
        WHERE provider = OLD.provider AND owner = OLD.owner AND repo = OLD.repo AND number = OLD.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pulls_cells_are AFTER UPDATE ON pulls
WHEN NEW.state IS NOT OLD.state OR NEW.provider IS NOT OLD.provider OR NEW.ended_us IS NOT OLD.ended_us
    OR NEW.revised_us IS NOT OLD.revised_us OR NEW.reviewed_us IS NOT OLD.reviewed_us
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, 1 FROM pull_cells
        WHERE provider = NEW.provider AND owner = NEW.owner AND repo = NEW.repo AND number = NEW.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
END;
-- +goose StatementEnd

-- Alerts for which a hook of the policy has started a session, so that the same one starts no second.
CREATE TABLE hook_alerts (
    hook        TEXT NOT NULL,
    fingerprint TEXT NOT NULL, -- its SHA-256
    session     TEXT NOT NULL,
    started_us  INTEGER NOT NULL,
    PRIMARY KEY (hook, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX hook_alerts_by_time ON hook_alerts (hook, started_us);

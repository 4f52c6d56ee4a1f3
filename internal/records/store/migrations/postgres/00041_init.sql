-- +goose Up

-- Times are microseconds since 1970-01-01 UTC. Text that people or agents wrote is stored escaped (see text.go). Text
-- is compared and sorted by its bytes, as on SQLite, whatever the locale of the database.

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
    pr_url      TEXT COLLATE "C" NOT NULL,
    -- The process that made the proposal (engine.go, presence).
    process     TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- When body and contents of a settled proposal were removed; NULL: they are there.
    pruned_us   BIGINT,
    -- The agent's session in which a proposal or an attempt was made; '' for none. It is not part of the audit's text.
    session     TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- When we began to remove what the proposal had written; 0: never. That its pull request is closed is then nobody's
    -- decision.
    undone_us   BIGINT NOT NULL DEFAULT 0,
    -- The number of the pull request of ours to which the proposal adds a commit; 0 for one that opens its own.
    revises     BIGINT NOT NULL DEFAULT 0,
    -- What the proposal answers to the review of the pull request that it adds to, as JSON; '' for nothing.
    answers     TEXT NOT NULL DEFAULT '',
    actor       TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- What the lines of a proposal name and do, as JSON; '' for nothing, or where they were removed with the contents.
    facts       TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- The hash of the policy that judged a proposal, as the audit has it; '' in older ones.
    policy      TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX proposals_by_digest ON proposals (digest, state);
CREATE INDEX proposals_by_opening ON proposals (provider, owner, repo, opened_us);
CREATE INDEX proposals_by_position ON proposals (provider, owner, repo, opened_seq);
CREATE INDEX proposals_by_pull ON proposals (provider, owner, repo, pr_number, opened_seq);
CREATE INDEX proposals_unpruned ON proposals (created_us) WHERE pruned_us IS NULL;
CREATE INDEX proposals_undone ON proposals (provider, owner, repo, undone_us) WHERE undone_us > 0;
CREATE INDEX proposals_dry_runs ON proposals (created_us, id) WHERE state = 'dry_run' AND pruned_us IS NULL;

CREATE TABLE proposal_files (
    proposal_id TEXT COLLATE "C" NOT NULL REFERENCES proposals (id),
    path        TEXT COLLATE "C" NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    content     BYTEA NOT NULL,
    -- Which version of a file on the base branch the proposal was made for: its git blob id; '' if there was none or it
    -- is not known.
    base_sha    TEXT NOT NULL DEFAULT '',
    -- By which the same text under another name is known; see gitprovider.FileChange. '' for none.
    fingerprint TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (proposal_id, path)
);
CREATE INDEX proposal_files_fingerprint ON proposal_files (fingerprint) WHERE fingerprint <> '';

-- One row for each path that a reserved, committed or unsettled proposal holds.
CREATE TABLE reservations (
    provider    TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL, -- owner/name
    path        TEXT COLLATE "C" NOT NULL, -- in lower case
    proposal_id TEXT COLLATE "C" NOT NULL REFERENCES proposals (id),
    UNIQUE (provider, repo, path)
);
CREATE INDEX reservations_by_proposal ON reservations (proposal_id);

-- Local repositories have the identity of their root (CLAUDEOPS_LOCAL_ROOT): the provider is 'local:' and that, and
-- repo in local_prs, local_reviews and local_review_comments begins with it and a colon.
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
    -- Who reviewed, beside the name.
    issuer       TEXT COLLATE "C" NOT NULL DEFAULT '',
    subject      TEXT COLLATE "C" NOT NULL DEFAULT '',
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
    hash        TEXT COLLATE "C" NOT NULL CHECK (length(hash) = 64),
    -- The hash of the policy that judged an attempt; '' in older rows, and where no policy could be read. The
    -- hash of a row covers it where it is not ''.
    policy      TEXT NOT NULL DEFAULT '',
    -- Who acted, as JSON (record.Actor); '' in older rows. The hash of a row of the audit covers it where it is
    -- not ''.
    actor       TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX audit_by_request ON audit (request_id);
CREATE INDEX audit_by_repo ON audit (owner, repo, seq);
CREATE INDEX audit_by_outcome ON audit (outcome, code, seq);
CREATE INDEX audit_by_caller ON audit (caller, seq);
CREATE INDEX audit_by_code ON audit (code, seq);
-- What people filter the audit by.
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_number ON audit (pr_number, seq) WHERE pr_number > 0;

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

-- What people are to be told. Numbers are never used again: a sender may settle one long after.
CREATE TABLE notices (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event      TEXT COLLATE "C" NOT NULL,
    payload    BYTEA NOT NULL,
    state      TEXT COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
    attempts   BIGINT NOT NULL DEFAULT 0, -- how often it was claimed
    created_us BIGINT NOT NULL,
    due_us     BIGINT NOT NULL DEFAULT 0, -- when it may be claimed, if pending
    settled_us BIGINT,                    -- when it was delivered or given up
    error      TEXT COLLATE "C" NOT NULL DEFAULT '' -- of the last attempt that failed
);
CREATE INDEX notices_pending ON notices (due_us) WHERE state = 'pending';
CREATE INDEX notices_settled ON notices (state, settled_us);

-- What the pull requests of forges change at one head commit, so that they are asked once. The latest head alone
-- counts.
CREATE TABLE pull_paths (
    provider TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL, -- owner/name, lower case
    number   BIGINT NOT NULL,
    head     TEXT COLLATE "C" NOT NULL,
    paths    TEXT COLLATE "C" NOT NULL, -- a JSON array
    seen_us  BIGINT NOT NULL,
    PRIMARY KEY (provider, repo, number)
);

-- Who may call the server. Secrets are not kept, only their SHA-256.
CREATE TABLE api_tokens (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL UNIQUE,
    max_tier   BIGINT NOT NULL,
    scopes     TEXT COLLATE "C" NOT NULL,  -- words separated by commas
    created_us BIGINT NOT NULL,
    revoked_us BIGINT, -- NULL: it is good
    -- Tokens of interactive agents open the door over MCP and nothing else; they have no scopes. Any token may end by
    -- itself.
    agent      BIGINT NOT NULL DEFAULT 0,
    expires_us BIGINT,
    -- Whose a token is, and when it was last used.
    owner_issuer TEXT COLLATE "C" NOT NULL DEFAULT '',
    owner_subject TEXT COLLATE "C" NOT NULL DEFAULT '',
    used_us    BIGINT,
    -- The repositories that the token of an agent is for, separated by spaces; empty: those that the server allows.
    repos      TEXT NOT NULL DEFAULT '',
    -- An agent's token may be in a dry run, and read-only, by itself: 0 or 1.
    dry_run    BIGINT NOT NULL DEFAULT 0,
    read_only  BIGINT NOT NULL DEFAULT 0,
    -- Who made a token.
    maker      TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- The hash of the token that a token was made with. It ends with that one, no matter who holds it.
    grantor    TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX api_tokens_one_good ON api_tokens (name) WHERE revoked_us IS NULL;
CREATE INDEX api_tokens_by_grantor ON api_tokens (grantor);

CREATE TABLE web_sessions (
    hash       TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    token_hash TEXT COLLATE "C" NOT NULL,
    created_us BIGINT NOT NULL,
    seen_us    BIGINT NOT NULL,
    -- What is known of a browser that signed in: for a person of a provider, who it is, and what lets the provider be
    -- asked again, which only the browser's cookie opens.
    id         TEXT COLLATE "C" NOT NULL DEFAULT '', -- for people
    browser    TEXT COLLATE "C" NOT NULL DEFAULT '',
    issuer     TEXT COLLATE "C" NOT NULL DEFAULT '',
    subject    TEXT COLLATE "C" NOT NULL DEFAULT '',
    provider_session TEXT COLLATE "C" NOT NULL DEFAULT ''
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

-- What the audit says about proposals, in a form that is quick to filter and search. It proves nothing: everything in
-- it comes from the audit, row by row.
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
    search     TEXT COLLATE "C" NOT NULL, -- title and paths, lower case
    session    TEXT COLLATE "C" NOT NULL DEFAULT ''
);
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
    gate TEXT COLLATE "C" NOT NULL,
    seq  BIGINT NOT NULL,
    -- When a gate refused an attempt; NULL where it denied one that ended otherwise. Refusals are counted by gate on
    -- every overview, and so without looking at the attempts.
    refused_us BIGINT,
    PRIMARY KEY (gate, seq)
);

-- What was last seen of the pull requests that we opened. The record of the proposals says how they came about.
CREATE TABLE pulls (
    provider    TEXT COLLATE "C" NOT NULL,
    owner       TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    proposal_id TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('open', 'closed', 'merged', 'gone')),
    head        TEXT COLLATE "C" NOT NULL DEFAULT '',
    approvals   BIGINT NOT NULL DEFAULT 0,
    objections  BIGINT NOT NULL DEFAULT 0,
    checks      TEXT COLLATE "C" NOT NULL DEFAULT '',
    updated_us  BIGINT NOT NULL,
    tried_us    BIGINT NOT NULL DEFAULT 0,
    seen_us     BIGINT,
    seen_by     TEXT COLLATE "C" NOT NULL DEFAULT '',
    ended_us    BIGINT,
    ended_by    TEXT COLLATE "C" NOT NULL DEFAULT '',
    misses      BIGINT NOT NULL DEFAULT 0,
    version     BIGINT NOT NULL DEFAULT 1,
    -- When somebody last asked for changes to a pull request, as far as anybody has looked, and when we last added a
    -- commit to it; NULL: never. Together they say whether the agent or a person is to act.
    asked_us    BIGINT,
    revised_us  BIGINT,
    -- Whose turn a pull request is (record.PullRecord.Standing), and the row of the audit that recorded it, by which
    -- lists are ordered.
    standing    TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (
                    CASE WHEN state <> 'open' THEN state
                    WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent'
                    WHEN checks = 'failure' THEN 'failed' WHEN checks = 'pending' THEN 'running'
                    WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END) STORED,
    seq         BIGINT,
    -- When a person was last seen to act on a pull request, when people were last reminded of it, and a digest of the
    -- labels that it was last seen with.
    acted_us    BIGINT,
    reminded_us BIGINT,
    labels_digest TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- When a person first reviewed a pull request, as far as anybody has looked; NULL: nobody has.
    reviewed_us BIGINT,
    -- When a process last began to close a pull request because nobody acts on it, and when we had closed it for that.
    closing_us  BIGINT,
    expired_us  BIGINT,
    PRIMARY KEY (provider, owner, repo, number)
);
CREATE INDEX pulls_due ON pulls (provider, state, tried_us);
CREATE INDEX pulls_by_number ON pulls (number, provider);
CREATE INDEX pulls_open ON pulls (proposal_id) WHERE state = 'open';
CREATE INDEX pulls_by_proposal ON pulls (proposal_id, state);
CREATE INDEX pulls_by_standing ON pulls (standing, proposal_id);
CREATE INDEX pulls_in_order ON pulls (standing, seq);

-- Deliveries of webhooks that were taken, so that none is taken twice.
CREATE TABLE webhook_deliveries (
    provider TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    seen_us  BIGINT NOT NULL,
    PRIMARY KEY (provider, id)
);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (seen_us);

-- When work that one process at a time does was begun last.
CREATE TABLE rounds (
    name     TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    begun_us BIGINT NOT NULL
);

CREATE TABLE agent_sessions (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL, -- sorted by time
    state      TEXT COLLATE "C" NOT NULL,
    process    TEXT COLLATE "C" NOT NULL,             -- that runs it (engine.go, presence)
    record     TEXT COLLATE "C" NOT NULL, -- session.Record as JSON
    -- When a person asked, at another process, that a session end; NULL: nobody did. The process that runs it looks
    -- again and again.
    stop_asked_us BIGINT
);
CREATE INDEX agent_sessions_running ON agent_sessions (process) WHERE state = 'running';

CREATE TABLE agent_session_events (
    session TEXT COLLATE "C" NOT NULL REFERENCES agent_sessions (id),
    seq     BIGINT NOT NULL,
    time_us BIGINT NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    tool    TEXT COLLATE "C" NOT NULL,
    body    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
);

-- Closed pull requests whose cooldown a person has lifted.
CREATE TABLE cooldown_lifts (
    provider  TEXT NOT NULL,
    owner     TEXT NOT NULL,
    repo      TEXT NOT NULL,
    number    BIGINT NOT NULL,
    lifted_us BIGINT NOT NULL, -- it ends what was closed before
    lifted_by TEXT NOT NULL,
    PRIMARY KEY (provider, owner, repo, number)
);

-- What agents noted for later sessions, newest last. The oldest entries go when there are too many.
CREATE TABLE agent_journal (
    session TEXT COLLATE "C" NOT NULL REFERENCES agent_sessions (id),
    seq     BIGINT NOT NULL,
    time_us BIGINT NOT NULL,
    body    TEXT COLLATE "C" NOT NULL,
    -- The session that noted an entry, with those whose words it was told.
    actor   TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (session, seq)
);

-- What sessions used of their models, for sums; session.Record has the same.
CREATE TABLE agent_session_usage (
    session            TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES agent_sessions (id),
    day                TEXT COLLATE "C" NOT NULL, -- on which it began, in UTC: 2006-01-02
    tier               BIGINT NOT NULL,
    state              TEXT COLLATE "C" NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cost_nano_usd      BIGINT NOT NULL,
    cost_source        TEXT COLLATE "C" NOT NULL, -- session.CostSource
    -- What kept the agent of a session from our files and processes; '' where it was not recorded.
    boundary           TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX agent_session_usage_by_day ON agent_session_usage (day, tier);

-- The runs of scripts. A row is there before its script starts, so that none is lost; settled says that the audit has
-- it too.
CREATE TABLE script_runs (
    id         TEXT PRIMARY KEY,
    script     TEXT NOT NULL,
    started_us BIGINT NOT NULL,
    ends_us    BIGINT NOT NULL,
    state      TEXT NOT NULL,
    settled    BIGINT NOT NULL DEFAULT 0,
    record     TEXT NOT NULL
);
CREATE INDEX script_runs_by_script ON script_runs (script, id);
CREATE INDEX script_runs_unsettled ON script_runs (ends_us) WHERE settled = 0;
CREATE INDEX script_runs_by_time ON script_runs (started_us);

-- How many attempts there were a day (since 1970, UTC; -1: on all days together), by outcome ('outcome') and, refused
-- ones, by gate ('gate') and code ('code'). The overview shows them, so they are counted when they are recorded.
CREATE TABLE day_counts (
    kind  TEXT COLLATE "C" NOT NULL,
    day   BIGINT NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (kind, day, name)
);

-- Parts of titles and paths, which a search finds without looking at every attempt. It needs the extension pg_trgm,
-- which the owner of a database may create. Where it cannot be had, a search looks at every attempt.
-- +goose StatementBegin
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX attempts_by_text ON attempts USING gin (search gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE NOTICE 'without pg_trgm: %', SQLERRM;
END
$$;
-- +goose StatementEnd

-- How far the heads of the audit were exported: the last row that each sink has taken. What follows it is still to be
-- exported, by whatever process comes next.
CREATE TABLE audit_exports (
    sink        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq         BIGINT NOT NULL,
    hash        TEXT COLLATE "C" NOT NULL,
    exported_us BIGINT,
    problem     TEXT COLLATE "C" NOT NULL DEFAULT '',
    problem_us  BIGINT
);

-- What reviews of local pull requests say of lines of files.
CREATE TABLE local_review_comments (
    repo      TEXT COLLATE "C" NOT NULL, -- owner/name
    number    BIGINT NOT NULL,
    review    BIGINT NOT NULL, -- its position in local_reviews
    position  BIGINT NOT NULL,
    path      TEXT COLLATE "C" NOT NULL,
    line      BIGINT NOT NULL,
    before    BIGINT NOT NULL, -- 1: a line of the file as it was before the change
    commit_id TEXT COLLATE "C" NOT NULL,
    body      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number, review, position),
    FOREIGN KEY (repo, number, review) REFERENCES local_reviews (repo, number, position)
);

-- What attempts wanted that were refused, without what may be a secret: an aid for people, and no part of the audit.
CREATE TABLE refused_changes (
    request_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    created_us BIGINT NOT NULL,
    change     TEXT COLLATE "C" NOT NULL -- JSON
);
CREATE INDEX refused_changes_by_time ON refused_changes (created_us);

-- Agents that are connected to a process. One that a person cut off stays until it has been over for a while: so long
-- its token lets nobody in.
CREATE TABLE agent_connections (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    process    TEXT COLLATE "C" NOT NULL,   -- that serves it (engine.go, presence)
    session    TEXT COLLATE "C" NOT NULL,   -- of the agent; '' for none
    credential TEXT COLLATE "C" NOT NULL,   -- the token's name; '' for the ticket of the session
    tier       BIGINT NOT NULL,
    dry_run    BIGINT NOT NULL,
    read_only  BIGINT NOT NULL,
    way        TEXT COLLATE "C" NOT NULL,
    peer       TEXT COLLATE "C" NOT NULL,
    since_us   BIGINT NOT NULL,
    calls      BIGINT NOT NULL, -- under way
    cut_us     BIGINT,          -- when a person cut it off
    cut_by     TEXT COLLATE "C" NOT NULL DEFAULT '',
    ended_us   BIGINT
);
CREATE INDEX agent_connections_cut ON agent_connections (credential, cut_us) WHERE cut_us IS NOT NULL;

-- Persons whom a provider of identities has recognised. A name is given to one of them for ever, so that whatever is
-- recorded under it is theirs.
CREATE TABLE people (
    issuer    TEXT COLLATE "C" NOT NULL,
    subject   TEXT COLLATE "C" NOT NULL,
    provider  TEXT COLLATE "C" NOT NULL, -- as the operator names it
    name      TEXT COLLATE "C" NOT NULL UNIQUE, -- in the record
    username  TEXT COLLATE "C" NOT NULL, -- at the provider
    member_of TEXT COLLATE "C" NOT NULL, -- JSON
    looked_us BIGINT NOT NULL, -- when the provider last said so
    -- What lets a provider of identities be asked about a person belongs to the person, and to none of their logins:
    -- tokens and programs are judged by it, too.
    sealed    TEXT COLLATE "C" NOT NULL DEFAULT '',
    refused   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (issuer, subject)
);

-- Programs that have registered to ask people to let them in as agents (OAuth 2.1).
CREATE TABLE oauth_clients (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL, -- as the program calls itself
    redirects  TEXT COLLATE "C" NOT NULL, -- JSON: the addresses that browsers may be sent back to
    created_us BIGINT NOT NULL
);
CREATE INDEX oauth_clients_by_age ON oauth_clients (created_us);

-- What a person has allowed, until the program comes for it. Of codes, as of all secrets, only the SHA-256 is kept.
CREATE TABLE oauth_codes (
    hash          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    client        TEXT COLLATE "C" NOT NULL,
    redirect      TEXT COLLATE "C" NOT NULL,
    challenge     TEXT COLLATE "C" NOT NULL, -- of PKCE, by S256
    name          TEXT COLLATE "C" NOT NULL, -- of the token that is to be made
    max_tier      BIGINT NOT NULL,
    repos         TEXT COLLATE "C" NOT NULL,
    dry_run       BIGINT NOT NULL,
    owner_issuer  TEXT COLLATE "C" NOT NULL,
    owner_subject TEXT COLLATE "C" NOT NULL,
    grantor       TEXT COLLATE "C" NOT NULL, -- hash of the token by which the person was signed in
    expires_us    BIGINT NOT NULL,
    token         TEXT COLLATE "C" NOT NULL DEFAULT '', -- id of the token that was made of it; '': it is unused
    -- Who has allowed a program what it exchanges its code for.
    maker         TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX oauth_codes_by_age ON oauth_codes (expires_us);

-- What a program shows for a token of an agent that a person gave it this way.
CREATE TABLE oauth_grants (
    token            TEXT COLLATE "C" PRIMARY KEY NOT NULL, -- id in api_tokens
    client           TEXT COLLATE "C" NOT NULL,
    client_name      TEXT COLLATE "C" NOT NULL,
    family           TEXT COLLATE "C" NOT NULL UNIQUE, -- what all its refresh tokens begin with
    refresh          TEXT COLLATE "C" NOT NULL,        -- the only refresh token that is good
    refresh_until_us BIGINT NOT NULL,
    access           TEXT COLLATE "C" NOT NULL UNIQUE,
    access_until_us  BIGINT NOT NULL,
    former           TEXT COLLATE "C" NOT NULL, -- the access token before it
    former_until_us  BIGINT NOT NULL
);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client);
CREATE INDEX oauth_grants_by_former ON oauth_grants (former);

-- How many pull requests stand so. Triggers count each change, so that a reader reads a few rows.
CREATE TABLE pull_counts (
    provider TEXT COLLATE "C" NOT NULL,
    standing TEXT COLLATE "C" NOT NULL,
    count    BIGINT NOT NULL,
    PRIMARY KEY (provider, standing)
);

-- +goose StatementBegin
CREATE FUNCTION pulls_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE pull_counts SET count = count - 1 WHERE provider = OLD.provider AND standing = OLD.standing;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO pull_counts (provider, standing, count) VALUES (NEW.provider, NEW.standing, 1)
            ON CONFLICT (provider, standing) DO UPDATE SET count = pull_counts.count + 1;
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER pulls_count_new AFTER INSERT OR DELETE ON pulls FOR EACH ROW EXECUTE FUNCTION pulls_are_counted();

CREATE TRIGGER pulls_count_changed AFTER UPDATE ON pulls FOR EACH ROW
    WHEN (OLD.standing <> NEW.standing OR OLD.provider <> NEW.provider) EXECUTE FUNCTION pulls_are_counted();

-- The dry runs whose contents are there, and the rows of the audit that recorded them. They wait while no proposal has
-- taken their change up.
CREATE TABLE dry_runs (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    seq        BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    provider   TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    waits      BIGINT NOT NULL
);
CREATE INDEX dry_runs_by_change ON dry_runs (digest, provider);
CREATE INDEX dry_runs_by_time ON dry_runs (created_us, id, provider) WHERE waits = 1;
CREATE INDEX dry_runs_in_order ON dry_runs (seq, created_us) WHERE waits = 1;

-- +goose StatementBegin
CREATE FUNCTION attempts_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
    SELECT p.id, NEW.seq, p.created_us, p.provider, p.digest, CASE WHEN EXISTS (
            SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
                AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    FROM proposals p WHERE p.id = NEW.request_id AND p.state = 'dry_run' AND p.pruned_us IS NULL
    ON CONFLICT (id) DO NOTHING;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER attempts_wait AFTER INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION attempts_wait();

-- +goose StatementBegin
CREATE FUNCTION proposals_take_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE dry_runs SET waits = 0 WHERE digest = NEW.digest AND provider = NEW.provider;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER proposals_take_up AFTER INSERT ON proposals FOR EACH ROW
    WHEN (NEW.state IN ('reserved', 'committed', 'unsettled', 'opened')) EXECUTE FUNCTION proposals_take_up();

-- +goose StatementBegin
CREATE FUNCTION proposals_pruned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM dry_runs WHERE id = NEW.id;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER proposals_pruned AFTER UPDATE OF pruned_us ON proposals FOR EACH ROW
    WHEN (NEW.pruned_us IS NOT NULL) EXECUTE FUNCTION proposals_pruned();

-- +goose StatementBegin
CREATE FUNCTION proposals_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM dry_runs WHERE id = NEW.id AND NEW.state <> 'dry_run';
    UPDATE dry_runs SET provider = NEW.provider WHERE id = NEW.id;
    UPDATE dry_runs SET waits = CASE WHEN EXISTS (
            SELECT 1 FROM proposals taken WHERE taken.digest = dry_runs.digest AND taken.provider = dry_runs.provider
                AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    WHERE digest = NEW.digest AND provider IN (OLD.provider, NEW.provider);
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER proposals_change AFTER UPDATE OF state, provider ON proposals FOR EACH ROW
    WHEN (OLD.provider <> NEW.provider OR OLD.state <> NEW.state
        AND (OLD.state IN ('dry_run', 'failed') OR NEW.state IN ('dry_run', 'failed')))
    EXECUTE FUNCTION proposals_change();

-- Logout tokens of providers of identities that were taken, so that none ends a later login.
CREATE TABLE logout_tokens (
    issuer   TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    until_us BIGINT NOT NULL,
    PRIMARY KEY (issuer, id)
);

-- How the sessions of the schedule ended: counted, so that metrics and pages need not read every session.
CREATE TABLE scheduled_sessions (
    state   TEXT COLLATE "C" NOT NULL,
    cause   TEXT COLLATE "C" NOT NULL,
    count   BIGINT NOT NULL,
    last_us BIGINT NOT NULL, -- when the last one ended so
    PRIMARY KEY (state, cause)
);

-- How many dry runs wait, by the day on which they were made (-1 for all) and by provider: counted in day_counts as
-- they come and go, since a page reads their number after each record.
-- +goose StatementBegin
CREATE FUNCTION dry_runs_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.waits = 1 THEN
        UPDATE day_counts SET count = count - 1 WHERE kind = 'waiting' AND name = OLD.provider
            AND day IN (OLD.created_us / 86400000000, -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.waits = 1 THEN
        INSERT INTO day_counts (kind, day, name, count)
            VALUES ('waiting', NEW.created_us / 86400000000, NEW.provider, 1), ('waiting', -1, NEW.provider, 1)
            ON CONFLICT (kind, day, name) DO UPDATE SET count = day_counts.count + 1;
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER dry_runs_count_new AFTER INSERT OR DELETE ON dry_runs FOR EACH ROW
    EXECUTE FUNCTION dry_runs_are_counted();

CREATE TRIGGER dry_runs_count_changed AFTER UPDATE ON dry_runs FOR EACH ROW
    WHEN (OLD.waits <> NEW.waits OR OLD.provider <> NEW.provider) EXECUTE FUNCTION dry_runs_are_counted();

-- What people have paused: one row for everything (owner and repo are '') and one for each repository.
CREATE TABLE pauses (
    owner    TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL,
    why      TEXT COLLATE "C" NOT NULL,
    paused_by TEXT COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL, -- 0: until a person resumes
    PRIMARY KEY (owner, repo)
);

-- Tools that write, from before their first write until they have ended. process is their lock.
CREATE TABLE write_claims (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner    TEXT COLLATE "C" NOT NULL,
    repo     TEXT COLLATE "C" NOT NULL,
    process  TEXT COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL
);

-- How changes ended, counted as they end: pull requests by the day on which they were opened, refusals by their own day
-- (since 1970, UTC), each by what a page groups them by: agent, tier, repository and session. kind is
--   pull     name says how it stands: merged, revised (merged after a revision), closed, gone,
--            ignored (closed by us because nobody had acted on it), reviewed or waiting
--   review   value is after how many begun minutes it was reviewed, merged or closed; above 6 hours, full hours
--   merge    value is after how many it was merged, likewise
--   refused  name is the code
CREATE TABLE outcome_cells (
    by_what  TEXT COLLATE "C" NOT NULL,
    day      BIGINT NOT NULL,
    grp      TEXT COLLATE "C" NOT NULL, -- the agent, the tier, owner/name in lower case, or the session
    provider TEXT COLLATE "C" NOT NULL,
    kind     TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    value    BIGINT NOT NULL,
    count    BIGINT NOT NULL,
    PRIMARY KEY (by_what, day, grp, provider, kind, name, value)
);

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
CREATE FUNCTION pulls_leave_cells() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, -1 FROM pull_cells
        WHERE provider = OLD.provider AND owner = OLD.owner AND repo = OLD.repo AND number = OLD.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION pulls_enter_cells() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
        SELECT by_what, day, grp, provider, kind, name, value, 1 FROM pull_cells
        WHERE provider = NEW.provider AND owner = NEW.owner AND repo = NEW.repo AND number = NEW.number
        ON CONFLICT (by_what, day, grp, provider, kind, name, value)
            DO UPDATE SET count = outcome_cells.count + excluded.count;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER pulls_cells_new AFTER INSERT ON pulls FOR EACH ROW EXECUTE FUNCTION pulls_enter_cells();

CREATE TRIGGER pulls_cells_gone BEFORE DELETE ON pulls FOR EACH ROW EXECUTE FUNCTION pulls_leave_cells();

CREATE TRIGGER pulls_cells_were BEFORE UPDATE ON pulls FOR EACH ROW
    WHEN (NEW.state IS DISTINCT FROM OLD.state OR NEW.provider IS DISTINCT FROM OLD.provider
        OR NEW.ended_us IS DISTINCT FROM OLD.ended_us OR NEW.revised_us IS DISTINCT FROM OLD.revised_us
        OR NEW.reviewed_us IS DISTINCT FROM OLD.reviewed_us)
    EXECUTE FUNCTION pulls_leave_cells();

CREATE TRIGGER pulls_cells_are AFTER UPDATE ON pulls FOR EACH ROW
    WHEN (NEW.state IS DISTINCT FROM OLD.state OR NEW.provider IS DISTINCT FROM OLD.provider
        OR NEW.ended_us IS DISTINCT FROM OLD.ended_us OR NEW.revised_us IS DISTINCT FROM OLD.revised_us
        OR NEW.reviewed_us IS DISTINCT FROM OLD.reviewed_us)
    EXECUTE FUNCTION pulls_enter_cells();

-- Alerts for which a hook of the policy has started a session, so that the same one starts no second.
CREATE TABLE hook_alerts (
    hook        TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL, -- its SHA-256
    session     TEXT COLLATE "C" NOT NULL,
    started_us  BIGINT NOT NULL,
    PRIMARY KEY (hook, fingerprint)
);
CREATE INDEX hook_alerts_by_time ON hook_alerts (hook, started_us);

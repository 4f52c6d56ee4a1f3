-- +goose Up

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
    PRIMARY KEY (provider, owner, repo, number)
);
CREATE INDEX pulls_due ON pulls (provider, state, tried_us);
CREATE INDEX pulls_by_number ON pulls (number, provider);

-- Those opened before: nobody has looked, so that how they ended is no news (version 0).
INSERT INTO pulls (provider, owner, repo, number, proposal_id, state, updated_us, version)
SELECT provider, owner, repo, pr_number, MAX(id), 'open', MAX(COALESCE(opened_us, created_us)), 0
FROM proposals WHERE state = 'opened' AND pr_number > 0 GROUP BY provider, owner, repo, pr_number;

-- Of local ones it is known.
UPDATE pulls SET
    state = (SELECT l.state FROM local_prs l WHERE l.repo = pulls.owner || '/' || pulls.repo AND l.number = pulls.number),
    ended_us = (SELECT l.closed_us FROM local_prs l WHERE l.repo = pulls.owner || '/' || pulls.repo AND l.number = pulls.number)
WHERE provider = 'local' AND EXISTS (
    SELECT 1 FROM local_prs l WHERE l.repo = pulls.owner || '/' || pulls.repo AND l.number = pulls.number);

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

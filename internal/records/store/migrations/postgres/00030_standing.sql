-- +goose Up

-- When somebody last asked for changes to a pull request, as far as anybody has looked, and when we last added a commit to it;
-- NULL: never. Together they say whether the agent or a person is to act.
ALTER TABLE pulls ADD COLUMN asked_us BIGINT;
ALTER TABLE pulls ADD COLUMN revised_us BIGINT;
UPDATE pulls SET revised_us = (SELECT MAX(p.opened_us) FROM proposals p WHERE p.provider = pulls.provider AND p.owner = pulls.owner
    AND p.repo = pulls.repo AND p.pr_number = pulls.number AND p.revises > 0 AND p.state = 'opened');

-- Counts by state read the index alone.
CREATE INDEX pulls_by_state ON pulls (state, provider);

-- What people filter the audit by.
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_number ON audit (pr_number, seq) WHERE pr_number > 0;

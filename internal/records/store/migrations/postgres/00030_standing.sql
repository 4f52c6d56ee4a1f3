-- +goose Up

-- When somebody last asked for changes to a pull request, as far as anybody has looked, and when we last added a commit to it;
-- NULL: never. Together they say whether the agent or a person is to act.
ALTER TABLE pulls ADD COLUMN asked_us BIGINT;
ALTER TABLE pulls ADD COLUMN revised_us BIGINT;
UPDATE pulls SET revised_us = (SELECT MAX(p.opened_us) FROM proposals p WHERE p.provider = pulls.provider AND p.owner = pulls.owner
    AND p.repo = pulls.repo AND p.pr_number = pulls.number AND p.revises > 0 AND p.state = 'opened');

-- Counts by state read the index alone.
CREATE INDEX pulls_by_state ON pulls (state, provider);
CREATE INDEX pulls_by_proposal ON pulls (proposal_id, state);

-- What people filter the audit by.
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_number ON audit (pr_number, seq) WHERE pr_number > 0;

-- Why attempts were refused: of the last day by their time, and else by days.
CREATE INDEX attempts_refused ON attempts (time_us, code) WHERE outcome = 'refused';
INSERT INTO day_counts (kind, day, name, count)
SELECT 'code', time_us / 86400000000, code, COUNT(*) FROM attempts WHERE outcome = 'refused' GROUP BY 2, 3;

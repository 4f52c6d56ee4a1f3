-- +goose Up

-- When a process last began to close a pull request because nobody acts on it, and when we had closed it for that.
ALTER TABLE pulls ADD COLUMN closing_us BIGINT;
ALTER TABLE pulls ADD COLUMN expired_us BIGINT;

-- As before, and one that we closed because nobody had acted on it is "ignored".
CREATE OR REPLACE VIEW pull_fates AS
SELECT provider, owner, repo, number, day, session, tier, caller, fate,
    CASE WHEN reviewed < 1 THEN 1 WHEN reviewed <= 360 THEN reviewed ELSE reviewed - reviewed % 60 END AS to_review,
    CASE WHEN merged < 1 THEN 1 WHEN merged <= 360 THEN merged ELSE merged - merged % 60 END AS to_merge
FROM (
    SELECT r.provider, r.owner, r.repo, r.number, p.opened_us / 86400000000 AS day, p.session, p.tier, p.caller,
        CASE WHEN r.state = 'closed' AND r.expired_us IS NOT NULL THEN 'ignored'
            WHEN r.state = 'merged' AND r.revised_us IS NOT NULL THEN 'revised' WHEN r.state <> 'open' THEN r.state
            WHEN r.reviewed_us IS NULL THEN 'waiting' ELSE 'reviewed' END AS fate,
        (CASE WHEN r.reviewed_us IS NOT NULL THEN r.reviewed_us WHEN r.state IN ('merged', 'closed') AND r.expired_us IS NULL
            THEN r.ended_us END
            - p.opened_us) / 60000000 + 1 AS reviewed,
        (CASE WHEN r.state = 'merged' THEN r.ended_us END - p.opened_us) / 60000000 + 1 AS merged
    FROM pulls r JOIN proposals p ON p.id = r.proposal_id WHERE p.opened_us IS NOT NULL
) f;

-- +goose Up

-- When a person first reviewed a pull request, as far as anybody has looked; NULL: nobody has.
ALTER TABLE pulls ADD COLUMN reviewed_us BIGINT;
UPDATE pulls SET reviewed_us = COALESCE(asked_us, updated_us) WHERE approvals > 0 OR objections > 0;

-- How changes ended, counted as they end: pull requests by the day on which they were opened, refusals by their own day
-- (since 1970, UTC), each by what a page groups them by: agent, tier, repository and session. kind is
--   pull     name says how it stands: merged, revised (merged after a revision), closed, gone, reviewed or waiting
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
        CASE WHEN r.state = 'merged' AND r.revised_us IS NOT NULL THEN 'revised' WHEN r.state <> 'open' THEN r.state
            WHEN r.reviewed_us IS NULL THEN 'waiting' ELSE 'reviewed' END AS fate,
        (CASE WHEN r.reviewed_us IS NOT NULL THEN r.reviewed_us WHEN r.state IN ('merged', 'closed') THEN r.ended_us END
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

INSERT INTO outcome_cells
    SELECT by_what, day, grp, provider, kind, name, value, COUNT(*) FROM pull_cells GROUP BY 1, 2, 3, 4, 5, 6, 7;
INSERT INTO outcome_cells
    SELECT b.by_what, a.time_us / 86400000000, CASE b.by_what WHEN 'agent' THEN a.caller
            WHEN 'tier' THEN CAST(u.tier AS TEXT) WHEN 'session' THEN a.session ELSE a.repo END,
        a.provider, 'refused', a.code, 0, COUNT(*)
    FROM attempts a JOIN audit u ON u.seq = a.seq
    JOIN (SELECT 'agent' AS by_what UNION ALL SELECT 'tier' UNION ALL SELECT 'repository' UNION ALL SELECT 'session') b
        ON b.by_what <> 'session' OR a.session <> ''
    WHERE a.outcome = 'refused' GROUP BY 1, 2, 3, 4, 6;

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

-- +goose Up

-- Whose turn a pull request is (record.PullRecord.Standing), and the row of the audit that recorded it, by which lists are ordered.
ALTER TABLE pulls ADD COLUMN standing TEXT GENERATED ALWAYS AS (CASE WHEN state <> 'open' THEN state
    WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent'
    WHEN checks = 'failure' THEN 'failed' WHEN checks = 'pending' THEN 'running'
    WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END) VIRTUAL;
ALTER TABLE pulls ADD COLUMN seq INTEGER;
UPDATE pulls SET seq = (SELECT p.opened_seq FROM proposals p WHERE p.id = pulls.proposal_id);
CREATE INDEX pulls_by_standing ON pulls (standing, proposal_id);
CREATE INDEX pulls_in_order ON pulls (standing, seq);
DROP INDEX pulls_by_state;

-- How many pull requests stand so. Triggers count each change, so that whoever reads reads a few rows.
CREATE TABLE pull_counts (
    provider TEXT NOT NULL,
    standing TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (provider, standing)
) STRICT, WITHOUT ROWID;
INSERT INTO pull_counts (provider, standing, count) SELECT provider, standing, COUNT(*) FROM pulls GROUP BY 1, 2;

-- +goose StatementBegin
CREATE TRIGGER pulls_count_new AFTER INSERT ON pulls
BEGIN
    INSERT INTO pull_counts (provider, standing, count) VALUES (NEW.provider, NEW.standing, 1)
        ON CONFLICT (provider, standing) DO UPDATE SET count = pull_counts.count + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pulls_count_changed AFTER UPDATE ON pulls WHEN OLD.standing <> NEW.standing OR OLD.provider <> NEW.provider
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

-- The dry runs whose contents are there, and the rows of the audit that recorded them. They wait while no proposal has taken
-- their change up.
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
INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
SELECT p.id, MIN(a.seq), p.created_us, p.provider, p.digest, CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
            AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
FROM proposals p JOIN audit a ON a.request_id = p.id JOIN attempts t ON t.seq = a.seq
WHERE p.state = 'dry_run' AND p.pruned_us IS NULL GROUP BY p.id;

-- +goose StatementBegin
CREATE TRIGGER attempts_wait AFTER INSERT ON attempts
BEGIN
    INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
    SELECT p.id, NEW.seq, p.created_us, p.provider, p.digest, CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
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
    UPDATE dry_runs SET waits = CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = dry_runs.digest AND taken.provider = dry_runs.provider
            AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    WHERE digest = NEW.digest AND provider IN (OLD.provider, NEW.provider);
END;
-- +goose StatementEnd

-- Of all days together, under day -1.
INSERT INTO day_counts (kind, day, name, count) SELECT kind, -1, name, SUM(count) FROM day_counts GROUP BY 1, 3;

-- +goose Up

-- Whose turn a pull request is (record.PullRecord.Standing), and the row of the audit that recorded it, by which lists are ordered.
ALTER TABLE pulls ADD COLUMN standing TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (CASE WHEN state <> 'open' THEN state
    WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent'
    WHEN checks = 'failure' THEN 'failed' WHEN checks = 'pending' THEN 'running'
    WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END) STORED;
ALTER TABLE pulls ADD COLUMN seq BIGINT;
UPDATE pulls SET seq = (SELECT p.opened_seq FROM proposals p WHERE p.id = pulls.proposal_id);
CREATE INDEX pulls_by_standing ON pulls (standing, proposal_id);
CREATE INDEX pulls_in_order ON pulls (standing, seq);
DROP INDEX pulls_by_state;

-- How many pull requests stand so. Triggers count each change, so that whoever reads reads a few rows.
CREATE TABLE pull_counts (
    provider TEXT COLLATE "C" NOT NULL,
    standing TEXT COLLATE "C" NOT NULL,
    count    BIGINT NOT NULL,
    PRIMARY KEY (provider, standing)
);
INSERT INTO pull_counts (provider, standing, count) SELECT provider, standing, COUNT(*) FROM pulls GROUP BY 1, 2;

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

-- The dry runs whose contents are there, and the rows of the audit that recorded them. They wait while no proposal has taken
-- their change up.
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
INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
SELECT p.id, MIN(a.seq), p.created_us, p.provider, p.digest, CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
            AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
FROM proposals p JOIN audit a ON a.request_id = p.id JOIN attempts t ON t.seq = a.seq
WHERE p.state = 'dry_run' AND p.pruned_us IS NULL GROUP BY p.id;

-- +goose StatementBegin
CREATE FUNCTION attempts_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dry_runs (id, seq, created_us, provider, digest, waits)
    SELECT p.id, NEW.seq, p.created_us, p.provider, p.digest, CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = p.digest AND taken.provider = p.provider
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
    UPDATE dry_runs SET waits = CASE WHEN EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = dry_runs.digest AND taken.provider = dry_runs.provider
            AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened')) THEN 0 ELSE 1 END
    WHERE digest = NEW.digest AND provider IN (OLD.provider, NEW.provider);
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER proposals_change AFTER UPDATE OF state, provider ON proposals FOR EACH ROW
    WHEN (OLD.provider <> NEW.provider OR OLD.state <> NEW.state
        AND (OLD.state IN ('dry_run', 'failed') OR NEW.state IN ('dry_run', 'failed'))) EXECUTE FUNCTION proposals_change();

-- Of all days together, under day -1.
INSERT INTO day_counts (kind, day, name, count)
SELECT kind, -1, name, SUM(count) FROM day_counts GROUP BY 1, 3;

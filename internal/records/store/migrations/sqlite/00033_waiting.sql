-- +goose Up

-- How many dry runs wait, by the day on which they were made (-1 for all) and by provider: counted in day_counts as they
-- come and go, since a page reads their number after each record.
INSERT INTO day_counts (kind, day, name, count)
    SELECT 'waiting', created_us / 86400000000, provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 2, 3;
INSERT INTO day_counts (kind, day, name, count)
    SELECT 'waiting', -1, provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 3;

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

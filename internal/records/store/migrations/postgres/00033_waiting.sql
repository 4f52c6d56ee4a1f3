-- +goose Up

-- How many dry runs wait, by the day on which they were made (-1 for all) and by provider: counted in day_counts as they
-- come and go, since a page reads their number after each record.
INSERT INTO day_counts (kind, day, name, count)
    SELECT 'waiting', created_us / 86400000000, provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 2, 3;
INSERT INTO day_counts (kind, day, name, count)
    SELECT 'waiting', -1, provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 3;

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

-- +goose Up

-- How many attempts there were a day (since 1970, UTC), by outcome ('outcome') and, refused ones, by gate ('gate'). The overview
-- shows them, so they are counted when they are recorded.
CREATE TABLE day_counts (
    kind  TEXT NOT NULL,
    day   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, day, name)
) STRICT, WITHOUT ROWID;
INSERT INTO day_counts (kind, day, name, count)
SELECT 'outcome', time_us / 86400000000, outcome, COUNT(*) FROM attempts GROUP BY 2, 3;
INSERT INTO day_counts (kind, day, name, count)
SELECT 'gate', refused_us / 86400000000, gate, COUNT(*) FROM attempt_gates WHERE refused_us IS NOT NULL GROUP BY 2, 3;
DROP INDEX attempt_gates_refused;

CREATE INDEX proposals_dry_runs ON proposals (created_us, id) WHERE state = 'dry_run' AND pruned_us IS NULL;
CREATE INDEX pulls_open ON pulls (proposal_id) WHERE state = 'open';

-- Parts of titles and paths, which a search finds without looking at every attempt.
CREATE VIRTUAL TABLE attempt_texts USING fts5 (search, content = 'attempts', content_rowid = 'seq', tokenize = 'trigram case_sensitive 1');
INSERT INTO attempt_texts (attempt_texts) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER attempts_have_texts AFTER INSERT ON attempts
BEGIN
    INSERT INTO attempt_texts (rowid, search) VALUES (NEW.seq, NEW.search);
END;
-- +goose StatementEnd

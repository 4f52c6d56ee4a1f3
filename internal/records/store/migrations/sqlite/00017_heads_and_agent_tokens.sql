-- +goose Up

-- How far the heads of the audit were exported: the last row that each sink has taken. What follows it is still to be exported, by
-- whatever process comes next.
CREATE TABLE audit_exports (
    sink        TEXT NOT NULL PRIMARY KEY,
    seq         INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    exported_us INTEGER,
    problem     TEXT NOT NULL DEFAULT '',
    problem_us  INTEGER
) STRICT;

-- Tokens of interactive agents open the door over MCP and nothing else; they have no scopes. Any token may end by itself.
ALTER TABLE api_tokens ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_tokens ADD COLUMN expires_us INTEGER;

-- +goose Up

-- Who acted, as JSON (record.Actor); '' in rows from before. The hash of a row of the audit covers it where it is not ''.
ALTER TABLE audit ADD COLUMN actor TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN actor TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Who made a token.
ALTER TABLE api_tokens ADD COLUMN maker TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Who has allowed a program what it exchanges its code for.
ALTER TABLE oauth_codes ADD COLUMN maker TEXT COLLATE "C" NOT NULL DEFAULT '';

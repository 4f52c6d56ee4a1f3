-- +goose Up
-- What lets a provider of identities be asked about a person belongs to the person, and to none of their logins: tokens
-- and programs are judged by it, too.
ALTER TABLE people ADD COLUMN sealed TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE people ADD COLUMN refused BIGINT NOT NULL DEFAULT 0;
ALTER TABLE web_sessions DROP COLUMN sealed;
ALTER TABLE web_sessions DROP COLUMN looked_us;
-- The hash of the token that a token was made with. It ends with that one, no matter who holds it.
ALTER TABLE api_tokens ADD COLUMN grantor TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE api_tokens SET grantor = (SELECT g.grantor FROM oauth_grants g WHERE g.token = api_tokens.id)
    WHERE EXISTS (SELECT 1 FROM oauth_grants g WHERE g.token = api_tokens.id);
ALTER TABLE oauth_grants DROP COLUMN grantor;
CREATE INDEX api_tokens_by_grantor ON api_tokens (grantor);
-- The session that noted an entry, with those whose words it was told.
ALTER TABLE agent_journal ADD COLUMN actor TEXT COLLATE "C" NOT NULL DEFAULT '';

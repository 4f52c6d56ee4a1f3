-- +goose Up

-- Persons whom a provider of identities has recognised. A name is given to one of them for ever, so that whatever is recorded under it is
-- theirs.
CREATE TABLE people (
    issuer    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    provider  TEXT NOT NULL, -- as the operator names it
    name      TEXT NOT NULL UNIQUE, -- in the record
    username  TEXT NOT NULL, -- at the provider
    member_of TEXT NOT NULL, -- JSON
    looked_us INTEGER NOT NULL, -- when the provider last said so
    PRIMARY KEY (issuer, subject)
) STRICT;

-- What is known of a browser that signed in: for a person of a provider, who it is, and what lets the provider be asked again, which only
-- the browser's cookie opens.
ALTER TABLE web_sessions ADD COLUMN id TEXT NOT NULL DEFAULT ''; -- for people; '' for those of earlier versions
ALTER TABLE web_sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN provider_session TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN sealed TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN looked_us INTEGER;

-- Whose a token is, and when it was last used.
ALTER TABLE api_tokens ADD COLUMN owner_issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE api_tokens ADD COLUMN owner_subject TEXT NOT NULL DEFAULT '';
ALTER TABLE api_tokens ADD COLUMN used_us INTEGER;

-- Who reviewed, beside the name.
ALTER TABLE local_reviews ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE local_reviews ADD COLUMN subject TEXT NOT NULL DEFAULT '';

-- +goose Up

-- Persons whom a provider of identities has recognised. A name is given to one of them for ever, so that whatever is recorded under it is
-- theirs.
CREATE TABLE people (
    issuer    TEXT COLLATE "C" NOT NULL,
    subject   TEXT COLLATE "C" NOT NULL,
    provider  TEXT COLLATE "C" NOT NULL, -- as the operator names it
    name      TEXT COLLATE "C" NOT NULL UNIQUE, -- in the record
    username  TEXT COLLATE "C" NOT NULL, -- at the provider
    member_of TEXT COLLATE "C" NOT NULL, -- JSON
    looked_us BIGINT NOT NULL, -- when the provider last said so
    PRIMARY KEY (issuer, subject)
);

-- What is known of a browser that signed in: for a person of a provider, who it is, and what lets the provider be asked again, which only
-- the browser's cookie opens.
ALTER TABLE web_sessions ADD COLUMN id TEXT COLLATE "C" NOT NULL DEFAULT ''; -- for people; '' for those of earlier versions
ALTER TABLE web_sessions ADD COLUMN browser TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN issuer TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN subject TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN provider_session TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN sealed TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN looked_us BIGINT;

-- Whose a token is, and when it was last used.
ALTER TABLE api_tokens ADD COLUMN owner_issuer TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_tokens ADD COLUMN owner_subject TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_tokens ADD COLUMN used_us BIGINT;

-- Who reviewed, beside the name.
ALTER TABLE local_reviews ADD COLUMN issuer TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE local_reviews ADD COLUMN subject TEXT COLLATE "C" NOT NULL DEFAULT '';

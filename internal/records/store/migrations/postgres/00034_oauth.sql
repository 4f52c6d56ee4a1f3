-- +goose Up

-- Programs that have registered to ask people to let them in as agents (OAuth 2.1).
CREATE TABLE oauth_clients (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL, -- as the program calls itself
    redirects  TEXT COLLATE "C" NOT NULL, -- JSON: the addresses that browsers may be sent back to
    created_us BIGINT NOT NULL
);
CREATE INDEX oauth_clients_by_age ON oauth_clients (created_us);

-- What a person has allowed, until the program comes for it. Of codes, as of all secrets, only the SHA-256 is kept.
CREATE TABLE oauth_codes (
    hash          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    client        TEXT COLLATE "C" NOT NULL,
    redirect      TEXT COLLATE "C" NOT NULL,
    challenge     TEXT COLLATE "C" NOT NULL, -- of PKCE, by S256
    name          TEXT COLLATE "C" NOT NULL, -- of the token that is to be made
    max_tier      BIGINT NOT NULL,
    repos         TEXT COLLATE "C" NOT NULL,
    dry_run       BIGINT NOT NULL,
    owner_issuer  TEXT COLLATE "C" NOT NULL,
    owner_subject TEXT COLLATE "C" NOT NULL,
    grantor       TEXT COLLATE "C" NOT NULL, -- hash of the token by which the person was signed in
    expires_us    BIGINT NOT NULL,
    token         TEXT COLLATE "C" NOT NULL DEFAULT '' -- id of the token that was made of it; '': it is unused
);
CREATE INDEX oauth_codes_by_age ON oauth_codes (expires_us);

-- What a program shows for a token of an agent that a person gave it this way.
CREATE TABLE oauth_grants (
    token            TEXT COLLATE "C" PRIMARY KEY NOT NULL, -- id in api_tokens
    client           TEXT COLLATE "C" NOT NULL,
    client_name      TEXT COLLATE "C" NOT NULL,
    grantor          TEXT COLLATE "C" NOT NULL,
    family           TEXT COLLATE "C" NOT NULL UNIQUE, -- what all its refresh tokens begin with
    refresh          TEXT COLLATE "C" NOT NULL,        -- the only refresh token that is good
    refresh_until_us BIGINT NOT NULL,
    access           TEXT COLLATE "C" NOT NULL UNIQUE,
    access_until_us  BIGINT NOT NULL,
    former           TEXT COLLATE "C" NOT NULL, -- the access token before it
    former_until_us  BIGINT NOT NULL
);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client);
CREATE INDEX oauth_grants_by_former ON oauth_grants (former);

-- +goose Up

-- Programs that have registered to ask people to let them in as agents (OAuth 2.1).
CREATE TABLE oauth_clients (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL, -- as the program calls itself
    redirects  TEXT NOT NULL, -- JSON: the addresses that browsers may be sent back to
    created_us INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_clients_by_age ON oauth_clients (created_us);

-- What a person has allowed, until the program comes for it. Of codes, as of all secrets, only the SHA-256 is kept.
CREATE TABLE oauth_codes (
    hash          TEXT PRIMARY KEY NOT NULL,
    client        TEXT NOT NULL,
    redirect      TEXT NOT NULL,
    challenge     TEXT NOT NULL, -- of PKCE, by S256
    name          TEXT NOT NULL, -- of the token that is to be made
    max_tier      INTEGER NOT NULL,
    repos         TEXT NOT NULL,
    dry_run       INTEGER NOT NULL,
    owner_issuer  TEXT NOT NULL,
    owner_subject TEXT NOT NULL,
    grantor       TEXT NOT NULL, -- hash of the token by which the person was signed in
    expires_us    INTEGER NOT NULL,
    token         TEXT NOT NULL DEFAULT '' -- id of the token that was made of it; '': it is unused
) STRICT;
CREATE INDEX oauth_codes_by_age ON oauth_codes (expires_us);

-- What a program shows for a token of an agent that a person gave it this way.
CREATE TABLE oauth_grants (
    token            TEXT PRIMARY KEY NOT NULL, -- id in api_tokens
    client           TEXT NOT NULL,
    client_name      TEXT NOT NULL,
    grantor          TEXT NOT NULL,
    family           TEXT NOT NULL UNIQUE, -- what all its refresh tokens begin with
    refresh          TEXT NOT NULL,        -- the only refresh token that is good
    refresh_until_us INTEGER NOT NULL,
    access           TEXT NOT NULL UNIQUE,
    access_until_us  INTEGER NOT NULL,
    former           TEXT NOT NULL, -- the access token before it
    former_until_us  INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client);
CREATE INDEX oauth_grants_by_former ON oauth_grants (former);

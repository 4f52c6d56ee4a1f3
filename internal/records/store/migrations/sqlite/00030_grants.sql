-- +goose Up
-- What lets a provider of identities be asked about a person belongs to the person, and to none of their logins: tokens
-- and programs are judged by it, too.
ALTER TABLE people ADD COLUMN sealed TEXT NOT NULL DEFAULT '';
ALTER TABLE people ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE web_sessions DROP COLUMN sealed;
ALTER TABLE web_sessions DROP COLUMN looked_us;

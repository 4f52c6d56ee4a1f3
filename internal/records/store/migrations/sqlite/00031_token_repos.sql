-- +goose Up

-- The repositories that the token of an agent is for, separated by spaces; empty: those that the server allows.
ALTER TABLE api_tokens ADD COLUMN repos TEXT NOT NULL DEFAULT '';

-- +goose Up

-- Which version of a file on the base branch the proposal was made for: its git blob id; '' if there was none or it is not known.
ALTER TABLE proposal_files ADD COLUMN base_sha TEXT NOT NULL DEFAULT '';
-- By which the same text under another name is known; see gitprovider.FileChange. '' for none.
ALTER TABLE proposal_files ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
CREATE INDEX proposal_files_fingerprint ON proposal_files (fingerprint) WHERE fingerprint <> '';

-- +goose Up

-- Roots of local repositories (CLAUDEOPS_LOCAL_ROOT), by their identities. What is recorded of a root has its identity: the provider is
-- 'local:' and that, and repo in local_prs, local_reviews and local_review_comments begins with it and a colon. Rows without one are of
-- earlier versions, until the root that has their commits makes them its own.
CREATE TABLE local_roots (
    id        TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    looked_us BIGINT NOT NULL -- when it was last looked whether rows without an identity are its own
);

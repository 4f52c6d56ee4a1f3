// Package fakegithub is a GitHub that keeps everything in memory: REST and GraphQL over HTTP on this machine, as doors
// to a memhost.Host.
//
// It is strict with its clients. Every REST request is checked against GitHub's published OpenAPI description, and one
// that does not fit, or that no route takes, fails the test. Every GraphQL document is validated against GitHub's
// published schema and answered with errors as GitHub does. Both are trimmed to what is used here; see testdata. What
// is in the trimmed schema is answered; what an adapter needs besides must be added to both.
//
// The adapter's token is one of ops-bot's. Clients may also act as GitHub's users do around it: make and remove
// repositories of ops-bot's and of one organisation, invite other accounts, and review as those; see Server.TokenOf.
//
// Statuses, wordings and error types are those that GitHub has been seen to give. Where it gives different ones
// depending on the kind of token, those of a fine-grained token are given.
package fakegithub

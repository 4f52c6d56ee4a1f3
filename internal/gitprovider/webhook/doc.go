// Package webhook reads the webhooks that GitHub, Gitea and Forgejo send about pull requests: it checks that the sender
// knows the secret, and finds out which pull requests a delivery is about. Nothing else of a delivery is read: callers
// ask the provider instead.
//
// Facts about the senders, and where they are from:
//
//   - GitHub signs the raw body with HMAC-SHA256 and sends "sha256=" and lower-case hex in X-Hub-Signature-256; the
//     event is in X-GitHub-Event, the id of the delivery in X-GitHub-Delivery, and a redelivery has the id of the
//     original. It gives an answer ten seconds and tries nothing again by itself (docs.github.com, "Webhook events and
//     payloads", "Best practices for using webhooks", "Handling failed webhook deliveries").
//   - Gitea signs in the same way and sends the bare hex in X-Gitea-Signature, with X-Gitea-Event and X-Gitea-Delivery;
//     a replay from its pages is a new delivery with a new id, and it tries nothing again by itself
//     (services/webhook/deliver.go, models/webhook/hooktask.go and modules/webhook/type.go of go-gitea/gitea).
//     X-Gitea-Event groups: it is pull_request for a synchronisation, too, and pull_request_approved or
//     pull_request_rejected for a review.
//   - Forgejo sends the same headers, and each with X-Forgejo in place of X-Gitea beside it.
//   - All three send push when a branch is changed, with its name as refs/heads/NAME in ref; a push that removes the
//     branch, too.
package webhook

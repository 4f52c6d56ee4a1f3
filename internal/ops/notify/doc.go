// Package notify notifies people of the results of proposals: by an Apprise API server, by the apprise command, or by a
// signed JSON webhook. docs/guides/notifications.md is the contract for those who configure and receive it.
//
// A use case makes the notices of an event with a Deliverer, one for each target, and hands them to the ledger, which
// puts them into the store's outbox in the transaction that records the event. A Deliverer takes them from there
// afterwards. So a notice never fails or delays a pull request, one failing target never makes another one hear twice,
// and a process that is killed loses nothing.
//
// Delivery is at least once: a target that acted but could not say so is notified again, under the same
// Claudeops-Delivery. Order is not kept when a delivery had to be repeated; the message says when it happened.
//
// An entry of CLAUDEOPS_APPRISE_URLS that begins with http:// or https:// is an Apprise API server
// (github.com/caronc/apprise-api), whose path decides: .../notify/KEY has a configuration with its targets; .../notify
// is given each of the list's other URLs, or, if there are none, notifies those that its APPRISE_STATELESS_URLS name.
// Any other scheme (discord://, mailto://, apprises://, ...) is a notification URL for the apprise command, unless the
// list has a .../notify server. Web addresses that only some service understands (https://discord.com/api/webhooks/...)
// are refused.
//
// URLs hold tokens. Errors and log lines name a target by its name (webhook, apprise-discord) and, for HTTP, its host;
// they never hold a URL, an answer's body, or the output of the command.
package notify

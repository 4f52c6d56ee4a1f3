// Package transport is the only way out by HTTP.
//
// A Client asks hosts that the operator has named: registries, webhooks, sinks. It sends each its own credential, or
// none, follows redirects to named hosts alone, and reads answers within bounds. Its connections are a Pool's, which
// keeps it from private addresses.
//
// A Transport is the HTTP side of every adapter that speaks to a forge: one http.RoundTripper that knows when a
// request may be repeated, where the token may go, how long to wait and how much to read.
//
// An adapter hands Client to its library, makes its own URLs with URL, marks GraphQL queries with Safe, and turns what
// comes back into faults with Failure (no answer) and StatusFault (an answer that means the same at every forge).
//
// What a caller of a Transport can rely on:
//
//   - The token goes to the origin (scheme, host, port) of Options.Base and nowhere else. Redirects that leave the
//     origin are errors. No error and no log line holds the token in any common encoding.
//   - A write is sent once, unless it is certain that the server has not acted: the connection was not accepted, or the
//     server refused the request for coming too early, or for a token that has been replaced. Reads, and writes that
//     are marked with Repeatable, are repeated a few times.
//   - Writes of one Transport go one after the other, as GitHub asks of its clients.
//   - An answer is read in full, within bounds, before RoundTrip returns: bodies do not fail afterwards.
package transport

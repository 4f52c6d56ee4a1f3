// Package fakegitea is a Gitea on the loopback interface for tests: an HTTP door to a memhost.Host that answers as a
// Gitea 1.26 was recorded to answer, quirks included. Every request is held against the server's own API description:
// an unknown route, an unknown query parameter or a body field of the wrong type fails the test.
//
// Only what the adapter may call has a route. Merging, reviewing and pushing are done by people, on the Host or through
// its World.
package fakegitea

// Package githubapp gets tokens in the name of a GitHub App, for package github: a transport.Credential whose tokens
// are made to measure.
//
// A token is for the one repository that a request is about, and may read or write as the request does (see Use of
// package transport). GitHub makes it for an hour; it is kept in memory, used for requests of the same kind, and
// replaced some minutes before it ends. Who asks for one while it is being made waits for that one.
//
// What GitHub is asked in the app's own name (which installation, a token of it) is signed with the app's private key:
// a JWT of ten minutes. Both requests are made over a transport of their own, whose credential is a Signer; it has the
// same origin as that of package github, so that neither the signature nor a token goes to another host.
package githubapp

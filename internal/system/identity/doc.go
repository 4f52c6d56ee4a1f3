// Package identity asks providers of identities who a person is: OpenID Connect, which Gitea, Forgejo, Keycloak and
// Authentik speak, and the OAuth of GitHub. It does not sign anyone in; it only returns the person that the provider
// has recognised.
//
// A provider is not asked before somebody signs in. What it says is checked: issuer, audience, expiry, nonce and
// signature of the ID token, the subject of further answers, and the clock. Its hosts are those that the operator has
// named.
package identity

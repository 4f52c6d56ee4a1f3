// Package github implements gitprovider.Provider for GitHub and GitHub Enterprise Server.
//
// Reads go through GraphQL, because one query sees a repository at one moment: a Snapshot is one request, and a second
// one only if a pull request appeared whose files were never seen. Branches and commits are written through GraphQL as
// well (createRef, then createCommitOnBranch, which signs the commit and is guarded by the expected head); a commit
// that must keep an executable bit goes through REST's git data, which can say so. Pull requests, labels and reviewers
// are written through REST. What a create_pr costs: Snapshot 1 or 2 requests, Commit 2 (3 by git data), OpenPullRequest
// 1, Label 1.
//
// Branch and commit are two requests on purpose. Both as root fields of one mutation would save a round trip, but
// GraphQL runs the second field also after the first has failed: if the branch exists already at the base commit, the
// commit would land on somebody else's branch.
//
// port.go has the methods of the port. Each hands on to the part that does it (snapshots, commitWriter, opener, labels,
// ...), and gives the codes of the port; refusal.go and refusal_codes.go say what a refusal means.
//
// Every URL is built by transport.URL; what callers name travels there as one escaped segment or in JSON.
package github

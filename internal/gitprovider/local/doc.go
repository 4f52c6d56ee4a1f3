// Package local is the provider for plain git repositories without a forge: bare or ordinary ones below one root
// folder, as owner/name. Branches and commits are made by git's plumbing, pull requests live in the store, and a person
// reviews and merges with a Reviewer, which the provider port does not reach.
//
// # Whose configuration counts
//
// A repository's own configuration may have been written by somebody who must not run code in this process: hooks,
// filters, merge drivers, external diffs, file system monitors, signing programs. So everything that reads or writes
// objects runs in a workspace: a private, temporary git directory with a configuration of ours, borrowing only the
// repository's object store. Only references are read and written in the repository itself, by update-ref, for-each-ref
// and symbolic-ref, of whose settings hooks alone can run a program, and those are switched off; branches that are
// plain files, loose or packed, are read without a process. Environment, system and user configuration, replace
// references and grafts never take part, and no transport is allowed.
//
// The owner of a repository's files may be another user: git's safe.directory does not apply to an explicit --git-dir,
// and need not, since nothing of the repository's that it guards against is used. New objects get the permissions that
// the repository's object folder shows, so that a shared repository stays shared.
//
// # What is in the way
//
// Before each call, and again right before each write, the git directory is checked: anything that leads git out of it,
// or to something that is not a file, is refused. See layout and docs/guides/providers.md.
//
// # How a commit is made
//
// The trees above the files are read from one git cat-file, changed in memory, and sent with the files and the commit
// as a pack to git unpack-objects, which checks each object against its hash and flushes it to disk. That does not grow
// with the repository, and costs a third of the time of git fast-import. No file is checked out, so no work tree,
// filter or line-end conversion takes part. The commit becomes visible by one reference transaction, after it was read
// back, and a comparison of its trees with those of the base has shown that it changes the approved files, to the
// approved bytes, and nothing else. What a failure leaves behind are unreachable objects, which git gc removes.
package local

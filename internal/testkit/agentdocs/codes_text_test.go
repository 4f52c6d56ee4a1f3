package agentdocs

import "github.com/claudeops/claudeops/internal/base/fault"

// aboutCode is the text of docs/reference/codes.md about a code, in Markdown.
type aboutCode struct{ meaning, advice string }

// aboutCodes has a row for each code.
func aboutCodes() map[fault.Code]aboutCode {
	return map[fault.Code]aboutCode{
		fault.InvalidArgument: {
			meaning: "The request is malformed.",
			advice:  "Correct every entry of `violations`; they are all there at once.",
		},
		fault.Unauthenticated: {
			meaning: "REST: no valid bearer token. Connectors of agents: no valid ticket, or another user or process than the session's.",
			advice:  "Send a token that the operator has issued.",
		},
		fault.Forbidden: {
			meaning: "REST only: the token lacks the scope, or the request comes from another site or for another host.",
			advice:  "Use a token with the scope that the message names, or an address that the operator has listed.",
		},
		fault.TierDenied: {
			meaning: "The configured tier may not do this.",
			advice:  "Escalate to the tier that the message names; no request can raise a tier.",
		},
		fault.ScopeDenied: {
			meaning: "A path is outside the scope, or not in canonical form.",
			advice:  "Leave the file out, or ask a person; `rule` names the rule.",
		},
		fault.ContentDenied: {
			meaning: "A secret, a hidden character, no UTF-8, or too large.",
			advice:  "Change what `violations` names by file, line and rule.",
		},
		fault.RepoNotAllowed: {
			meaning: "The repository or base branch is outside the operator's list.",
			advice:  "Leave `base_branch` out, or ask the operator.",
		},
		fault.ReadOnly: {
			meaning: "The server takes no proposals.",
			advice:  "Read only, or ask the operator.",
		},
		fault.NotFound: {
			meaning: "No such repository, branch or pull request, or the token cannot see it. `revises`: no pull request of " +
				"ours has the number.",
			advice: "Check owner, name and number.",
		},
		fault.ProviderUnresolved: {
			meaning: "Nothing says which provider serves the repository.",
			advice:  "Do one of the things that the message lists.",
		},
		fault.DuplicatePR: {
			meaning: "An open pull request of ours touches one of the paths, or brings the same text under another name; with " +
				"`duplicates: any` in the policy, one of anybody. `revises`: nobody who may write has reviewed or commented it " +
				"since it was opened or last revised.",
			advice: "Report `existing_pr`; do not move the change into another file. `revises`: wait for the review.",
		},
		fault.Conflict: {
			meaning: "The base has moved, a file exists or is missing against the request, is not the one that `base_sha` " +
				"names, or has not exactly once what an edit replaces. `revises`: edits are not made from the branch's text; the " +
				"pull request is closed, approved or without a true mark, or its head is not a commit of ours.",
			advice: "Make the change anew from `present`: the file's blob id, and its text up to 16 KiB. `revises`: report " +
				"it; people decide there.",
		},
		fault.NoChange: {
			meaning: "The base has this content already, or lacks the file that is to be deleted. `revises`: the pull request " +
				"would change nothing any more.",
			advice: "Leave the file out. `revises`: report that it can be closed.",
		},
		fault.CooldownActive: {
			meaning: "A pull request on these paths, or with the same text, was closed without merging lately.",
			advice:  "Read why; not before `retry_after_seconds`.",
		},
		fault.LimitReached: {
			meaning: "Too many open pull requests, or too many made in the last hour; what is being made counts. `revises`: " +
				"the pull request was revised `max_revisions` times.",
			advice: "Let a person review what waits; not before `retry_after_seconds`. `revises`: report what is still asked for.",
		},
		fault.RateLimited: {
			meaning: "The provider's own limit is used up.",
			advice:  "Repeat after `retry_after_seconds`.",
		},
		fault.ProviderDisabled: {
			meaning: "The provider lacks configuration.",
			advice:  "Set the variable that the message names.",
		},
		fault.Misconfigured: {
			meaning: "Another setting, or a folder or file that it names, cannot be used: missing, not writable, malformed.",
			advice:  "Tell the operator what the message says; it names the variable or the folder.",
		},
		fault.UpstreamError: {
			meaning: "The provider failed, or the PostgreSQL server of the records restarts.",
			advice:  "Look whether it was done; then repeat the same request.",
		},
		fault.Timeout: {
			meaning: "The provider did not answer in time, the records stayed locked, or the call was cancelled.",
			advice:  "Look whether it was done; then repeat the same request.",
		},
		fault.Internal: {
			meaning: "A fault of Claude Ops.",
			advice:  "Find `request_id` in the log, and report it.",
		},
	}
}

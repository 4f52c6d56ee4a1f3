package prflow

// Names of the tools. They are a contract: prompts, settings and clients name them.
const (
	ToolCreatePR    = "create_pr"
	ToolListPRs     = "list_prs"
	ToolGetPRStatus = "get_pr_status"
)

// OpPromote is the name of the operation that opens what a dry run has shown.
const OpPromote = "promote_proposal"

// Names of the operations by which files are read; those that are refused are in the audit by them.
const (
	ActionReadFile  = "read_file"
	ActionReadDiff  = "read_pr_diff"
	ActionListFiles = "list_files"
)

// PromoteRequest names the dry run to open.
type PromoteRequest struct {
	ID string `json:"id" required:"true" path:"id" maxLength:"64" doc:"Request id of the dry run"`
}
